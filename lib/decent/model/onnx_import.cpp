#include "decent/model/onnx_import.h"

#include <algorithm>

#include "decent/core/error.h"
#include "decent/model/inspect.h"
#include "decent/model/onnx/element_type.h"
#include "decent/model/onnx/inline_functions.h"
#include "decent/model/onnx/read.h"
#include "decent/model/onnx_module.h"

namespace decent {
namespace {

bool trains_halves(const onnx::Classification& classification) {
  return std::any_of(classification.initializers.begin(), classification.initializers.end(),
                     [](const auto& entry) {
                       return entry.second.role == onnx::Role::trainable &&
                              onnx::is_half(entry.first->type);
                     });
}

}  // namespace

OnnxImport import_onnx(const std::filesystem::path& path, std::span<const std::string> unfreeze) {
  OnnxImport result;
  result.file = std::make_shared<const onnx::Model>(onnx::read_model(path));
  result.model = std::make_shared<const onnx::Model>(onnx::inline_functions(*result.file));
  result.classification = onnx::classify(result.model->graph, unfreeze);
  onnx::TranslationOptions options;
  options.widen_halves = trains_halves(result.classification);
  options.evaluate = evaluate_module;
  result.translation = onnx::translate(*result.model, result.classification, options);
  try {
    result.module = make_module(result.translation.module);
  } catch (const c10::Error& error) {
    throw std::logic_error("model '" + path.string() +
                           "': the translation of its graph is not TorchScript: " + error.what() +
                           "\n" + result.translation.module.methods);
  }
  return result;
}

}  // namespace decent
