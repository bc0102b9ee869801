#pragma once
// Finds the value that a classifier computes before its final Softmax or Sigmoid.

#include <optional>
#include <string>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// The end of a graph whose output `output` is probabilities.
struct ProbabilityEnd {
  bool is_sigmoid = false;
  std::string node;  // the Softmax or Sigmoid: "node 'softmax' (Softmax)"
  /// An operator that changes the probabilities before the output ("Clip"), or "".
  std::string changed_by;
  /// The value that would be the output without the Softmax or Sigmoid; "" if there is none.
  std::string logits;
};

/// Searches back from `output`, the name of one of the graph's outputs, for a Softmax or Sigmoid:
/// through views (Identity, Cast, Reshape, Transpose, ..), which are added to the graph once more
/// for the logits, and through operators with constants (Clip, Mul, ..), after which there are no
/// logits.
std::optional<ProbabilityEnd> find_probabilities(Graph& graph, const std::string& output);

}  // namespace decent::onnx
