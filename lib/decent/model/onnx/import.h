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

/// The result of importing a file.
struct OnnxImport {
  std::shared_ptr<const onnx::Model> file;  // unchanged
  std::shared_ptr<const onnx::Model>
      model;  // functions inlined, constants hoisted, patterns replaced; what the rest refers to
  std::map<std::string, std::size_t> patterns;  // recognised in `model`, with their numbers
  std::vector<onnx::RandomMask> masks;          // of `file`
  /// ImportOptions::output as the file's name for it; null if the file has no such output.
  std::optional<std::string> output;
  /// Outputs that are left out of the module, and why.
  std::vector<std::pair<std::string, std::string>> left_out;
  /// If the output is probabilities that the loss computes itself: where they come from.
  std::optional<onnx::ProbabilityEnd> probabilities;
  onnx::Classification classification;
  onnx::Translation translation;  // without its tensors, because the module has copies
  torch::jit::Module module;
};

/// Reads, translates and compiles. Throws UserError.
OnnxImport import_onnx(const std::filesystem::path& path, const ImportOptions& options);

}  // namespace decent
