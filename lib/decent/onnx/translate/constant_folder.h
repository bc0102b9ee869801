#pragma once
// Computes parts of a graph that are the same in every run once, at import; internal to this
// folder.

#include <string>
#include <vector>

#include "decent/onnx/translate/module_builder.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {

class ConstantFolder {
 public:
  /// Without `evaluate` nothing is folded.
  ConstantFolder(ModuleBuilder& module, const Evaluate& evaluate)
      : module_(module), evaluate_(evaluate) {}

  /// Whether all inputs of the node are constant, and its results are not too large.
  bool can_fold(const Node& node, const Operator& known) const;
  /// Defines the node's results as constants. `context` translates the node into a module of its
  /// own.
  void fold(NodeContext& context, const Operator& known);
  /// Whether a node is being folded, so that the source is not the model's.
  bool is_folding() const { return is_folding_; }

 private:
  std::vector<Tensor> outcomes(NodeContext& context, const Operator& known);
  std::vector<std::string> outputs_to_compute(const Node& node);
  std::vector<Tensor> evaluate(const std::vector<std::string>& names);
  std::vector<Tensor> evaluate_with_constants(ModuleSource source);

  ModuleBuilder& module_;
  const Evaluate& evaluate_;
  bool is_folding_ = false;
};

}  // namespace decent::onnx
