// x * sigmoid(x) and x * hard_sigmoid(x). PyTorch's own functions keep one tensor for the gradient
// instead of three, and where its parts meet (x = -3 and 3), hardswish has another gradient than a
// Clip.

#include "decent/onnx/patterns/pattern_matchers.h"

namespace decent::onnx {
namespace {

// Clip(x + 3, 0, 6): limits are inputs since opset 11.
bool is_clipped(const PatternGraph& graph, const Node& clip, const std::string& x,
                std::vector<const Node*>& inner) {
  const bool zero_to_six =
      clip.inputs.size() == 3
          ? graph.is_scalar(clip.inputs[1], 0) && graph.is_scalar(clip.inputs[2], 6)
          : float_attribute(clip, "min", -1) == 0 && float_attribute(clip, "max", -1) == 6;
  const Node* sum = graph.producer(clip.inputs.front(), "Add");
  const std::string* shifted = sum == nullptr ? nullptr : input_beside(graph, *sum, 3);
  if (!zero_to_six || shifted == nullptr || *shifted != x) return false;
  inner.insert(inner.end(), {&clip, sum});
  return true;
}

bool is_hard_sigmoid(const Node& node) {
  return is_near(float_attribute(node, "alpha", 0.2F), 1.0F / 6) &&
         float_attribute(node, "beta", 0.5F) == 0.5F;
}

}  // namespace

std::optional<Match> match_silu(const PatternGraph& graph, const Node& root) {
  if (!is(root, "Mul", 2)) return std::nullopt;
  for (const std::size_t place : {0, 1}) {
    const Node* sigmoid = graph.producer(root.inputs[place], "Sigmoid");
    if (sigmoid == nullptr || sigmoid->inputs.front() != root.inputs[1 - place]) continue;
    return Match{{sigmoid}, {node_like(root, "Swish", 24, {sigmoid->inputs.front()})}};
  }
  return std::nullopt;
}

std::optional<Match> match_hardswish(const PatternGraph& graph, const Node& root) {
  if (!is(root, "Mul", 2) && !is(root, "Div", 2)) return std::nullopt;
  Product product = product_of(graph, root);
  if (product.factors.size() != 2) return std::nullopt;
  for (const std::size_t place : {0, 1}) {
    const std::string& x = product.factors[1 - place];
    const Node* clip = graph.producer(product.factors[place], "Clip");
    const Node* sigmoid = graph.producer(product.factors[place], "HardSigmoid");
    std::vector<const Node*> inner = product.inner;
    const bool clipped =
        clip != nullptr && is_near(product.scale, 1.0 / 6) && is_clipped(graph, *clip, x, inner);
    const bool by_sigmoid = sigmoid != nullptr && product.scale == 1 &&
                            sigmoid->inputs.front() == x && is_hard_sigmoid(*sigmoid);
    if (by_sigmoid) inner.push_back(sigmoid);
    if (clipped || by_sigmoid)
      return Match{std::move(inner), {node_like(root, "HardSwish", 14, {x})}};
  }
  return std::nullopt;
}

}  // namespace decent::onnx
