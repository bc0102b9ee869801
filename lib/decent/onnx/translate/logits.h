#pragma once
// What a classifier computes before the Softmax or Sigmoid that it ends in.

#include <optional>
#include <string>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// The end of a graph whose output `output` is probabilities.
struct ProbabilityEnd {
  bool is_sigmoid = false;
  std::string node;  // the Softmax or Sigmoid: "node 'softmax' (Softmax)"
  /// An operator that changes the probabilities before they are given ("Clip"); "" without.
  std::string changed_by;
  /// The value that is the output without the Softmax or Sigmoid; "" where there is none.
  std::string logits;
};

/// Looks from `output`, a name of the graph's outputs, back for a Softmax or Sigmoid: through
/// views (Identity, Cast, Reshape, Transpose, ..), which are added to the graph once more for the
/// logits, and through operators with constants (Clip, Mul, ..), behind which there are none.
std::optional<ProbabilityEnd> find_probabilities(Graph& graph, const std::string& output);

}  // namespace decent::onnx
