#pragma once
// TorchScript modules made of source text, as imports of other formats write it.

#include <torch/csrc/jit/api/module.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace decent {

struct ScriptSource {
  std::string kind;     // "Onnx": of the type's name, "__torch__.OnnxModel"
  std::string methods;  // of the module
  /// Under their paths in the module: "layer1.0.conv1.weight".
  std::vector<std::pair<std::string, at::Tensor>> parameters = {};
  std::vector<std::pair<std::string, at::Tensor>> buffers = {};
  /// Attributes that are false, besides `training`.
  std::vector<std::string> switches = {};
  /// What "CONSTANTS.<name>" stands for, if anything.
  std::function<std::optional<at::Tensor>(const std::string& name)> constant = {};
};

/// Compiles the source. Every part of the module has the attribute `training`. Throws c10::Error
/// where the source is wrong.
torch::jit::Module compile(const ScriptSource& source);

}  // namespace decent
