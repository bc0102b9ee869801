#pragma once
// An .onnx file as a TorchScript module that can be trained.

#include <torch/csrc/jit/api/module.h>

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "decent/model/import_options.h"
#include "decent/onnx/patterns/patterns.h"
#include "decent/onnx/translate/logits.h"
#include "decent/onnx/translate/translation.h"

namespace decent {

/// What an import made of a file.
struct OnnxImport {
  std::shared_ptr<const onnx::Model> file;  // as it is
  std::shared_ptr<const onnx::Model>
      model;  // functions inlined, constants hoisted, patterns replaced; what the rest refers to
  std::map<std::string, std::size_t> patterns;  // recognised in `model`, with how often
  std::vector<onnx::RandomMask> masks;          // of `file`
  /// ImportOptions::output as the name that the file gives it; null where there is none such.
  std::optional<std::string> output;
  /// Outputs that are left out of the module, and why.
  std::vector<std::pair<std::string, std::string>> left_out;
  /// Where the output is probabilities that the loss makes itself: where they come from.
  std::optional<onnx::ProbabilityEnd> probabilities;
  onnx::Classification classification;
  onnx::Translation translation;  // without its tensors, of which the module has its own
  torch::jit::Module module;
};

/// Reads, translates and compiles. Throws UserError.
OnnxImport import_onnx(const std::filesystem::path& path, const ImportOptions& options);

}  // namespace decent
