#pragma once
// How a model file must be read for its intended use.

#include <optional>
#include <string>
#include <vector>

namespace decent {

/// What a loss computes from a model's output before it compares: cross_entropy takes the softmax,
/// bce_with_logits the sigmoid. A model that ends with the same function would apply it twice.
enum class LossActivation { none, softmax, sigmoid };

struct ImportOptions {
  /// Globs over tensors of an .onnx file that the rule of docs/onnx.md takes for constants.
  std::vector<std::string> unfreeze;
  /// Which of several outputs is used, by name or index. Other outputs of an .onnx file are left
  /// out if they need something that cannot be imported.
  std::optional<std::string> output;
  /// An .onnx file's output that ends in this function is used without it, see Model::forward.
  LossActivation activation = LossActivation::none;
};

}  // namespace decent
