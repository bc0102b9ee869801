#pragma once
// TorchScript modules from source text, which the imports of other formats write.

#include <torch/csrc/jit/api/module.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace decent {

struct ScriptSource {
  std::string kind;     // "Onnx": part of the type's name, "__torch__.OnnxModel"
  std::string methods;  // of the module
  /// By path in the module: "layer1.0.conv1.weight".
  std::vector<std::pair<std::string, at::Tensor>> parameters = {};
  std::vector<std::pair<std::string, at::Tensor>> buffers = {};
  /// Attributes besides `training` that are false at first.
  std::vector<std::string> switches = {};
  /// The value of "CONSTANTS.<name>", if it has one.
  std::function<std::optional<at::Tensor>(const std::string& name)> constant = {};
};

/// Compiles the source. Every part of the module has the attribute `training`. Throws c10::Error if
/// the source is wrong.
torch::jit::Module compile(const ScriptSource& source);

}  // namespace decent
