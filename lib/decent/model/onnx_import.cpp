#include "decent/model/onnx_import.h"

#include <algorithm>

#include "decent/core/error.h"
#include "decent/model/inspect.h"
#include "decent/model/onnx/elements.h"
#include "decent/model/onnx/gradient_paths.h"
#include "decent/model/onnx/hoist_constants.h"
#include "decent/model/onnx/inline_functions.h"
#include "decent/model/onnx/patterns.h"
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

// The name of an output that the recipe gives by name or index; select_output finds wrong ones.
std::vector<std::string> chosen_outputs(const std::vector<std::string>& names,
                                        const std::optional<std::string>& choice) {
  if (!choice) return {};
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == *choice || std::to_string(i) == *choice) return {names[i]};
  }
  return {};
}

}  // namespace

OnnxImport import_onnx(const std::filesystem::path& path, std::span<const std::string> unfreeze) {
  OnnxImport result;
  result.file = std::make_shared<const onnx::Model>(onnx::read_model(path));
  auto model = std::make_shared<onnx::Model>(onnx::inline_functions(*result.file));
  onnx::hoist_constants(*model);
  result.patterns = onnx::recognise_patterns(model->graph, model->opset());
  result.model = std::move(model);
  result.classification = onnx::classify(result.model->graph, unfreeze);
  onnx::TranslationOptions options;
  options.widen_halves = trains_halves(result.classification);
  options.evaluate = evaluate_module;
  result.translation = onnx::translate(*result.model, result.classification, options);
  try {
    result.module = make_module(result.translation.module);
  } catch (const std::exception& error) {
    throw UserError("model '" + path.string() +
                    "' cannot be imported: what its graph translates to does not compile, since "
                    "types of its values do not fit together: " +
                    reason_of(error));
  }
  // The module has copies of its own.
  result.translation.module.parameters.clear();
  result.translation.module.buffers.clear();
  result.translation.module.constants.clear();
  return result;
}

std::vector<std::string> import_report(const OnnxImport& import, onnx::Detail detail) {
  return onnx::import_report({.file = *import.file,
                              .model = *import.model,
                              .patterns = import.patterns,
                              .classification = import.classification,
                              .translation = import.translation},
                             detail);
}

std::string batch_advice(const OnnxImport& import, std::int64_t samples) {
  for (const onnx::ValueInfo& input : import.file->graph.inputs) {
    if (!input.shape || input.shape->empty()) continue;
    const std::optional<std::int64_t> fixed = input.shape->front().value;
    if (!fixed || *fixed == samples) continue;
    return "\nThe file was exported for batches of " + std::to_string(*fixed) + ", not of " +
           std::to_string(samples) +
           ". Export it with a free batch size (docs/onnx.md says how), or set data.batch_size and "
           "data.eval_batch_size";
  }
  return "";
}

void check_gradients(const OnnxImport& import, const std::optional<std::string>& output,
                     std::span<const std::string> frozen) {
  const onnx::GradientPaths paths =
      onnx::find_gradient_paths(*import.model, import.classification, import.translation,
                                chosen_outputs(import.translation.outputs, output));
  onnx::check_gradient_paths(paths, frozen);
}

}  // namespace decent
