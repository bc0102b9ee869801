// Softmax -> IsNaN -> Where: exporters write the softmax of scaled_dot_product_attention in this
// way, which gives zeros for fully masked rows. In parts, the gradient of such a row is NaN,
// because it goes through the softmax that gave NaN; PyTorch's gradient is zero.

#include "decent/onnx/patterns/pattern_matchers.h"
#include "decent/onnx/patterns/patterns.h"

namespace decent::onnx {

std::optional<Match> match_safe_softmax(const PatternGraph& graph, const Node& root) {
  if (!is(root, "Where", 3) || !graph.is_scalar(root.inputs[1], 0)) return std::nullopt;
  const Node* is_nan = graph.producer(root.inputs[0], "IsNaN");
  const Node* softmax = graph.producer(root.inputs[2], "Softmax");
  if (is_nan == nullptr || softmax == nullptr || is_nan->inputs.front() != root.inputs[2])
    return std::nullopt;
  // Before opset 13 the axes from `axis` on count as one, and the default axis is the second.
  const bool is_old = graph.opset(*softmax) < 13;
  const std::int64_t axis = int_attribute(*softmax, "axis", is_old ? 1 : -1);
  if (is_old && axis != -1 && graph.rank(softmax->inputs.front()) != axis + 1) return std::nullopt;
  Match match{{is_nan, softmax}, {node_like(root, "SafeSoftmax", 0, {softmax->inputs.front()})}};
  match.replacement.back().domain = kPatternDomain;
  set_attribute(match.replacement.back(), "axis", axis);
  return match;
}

}  // namespace decent::onnx
