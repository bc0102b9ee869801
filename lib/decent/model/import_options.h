#pragma once
// What the use of a model file says about how it is to be read.

#include <optional>
#include <string>
#include <vector>

namespace decent {

/// What a loss makes of a model's output before it compares: cross_entropy takes the softmax of
/// it, bce_with_logits the sigmoid. A model that ends with it would have it twice.
enum class LossActivation { none, softmax, sigmoid };

struct ImportOptions {
  /// Globs over tensors of an .onnx file that the rule of docs/onnx.md takes for constants.
  std::vector<std::string> unfreeze;
  /// Which of several outputs is used, by name or index. Others of an .onnx file are left out where
  /// they need what cannot be imported.
  std::optional<std::string> output;
  /// An .onnx file's output that ends in it is used without it, see Model::forward.
  LossActivation activation = LossActivation::none;
};

}  // namespace decent
