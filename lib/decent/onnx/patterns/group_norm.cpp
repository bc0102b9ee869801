// GroupNorm before opset 21: an InstanceNormalization of the groups with ones and zeros, between
// two Reshapes, then a Mul and an Add with weights of the channels. PyTorch's group_norm computes
// the gradient in one pass.

#include <algorithm>

#include "decent/onnx/format/elements.h"
#include "decent/onnx/patterns/pattern_matchers.h"

namespace decent::onnx {
namespace {

struct Groups {
  std::string x;
  std::int64_t count = 0;
  float epsilon = 1e-5F;
  std::vector<const Node*> inner;
};

bool is_shape_of(const PatternGraph& graph, const std::string& name, const std::string& x,
                 std::vector<const Node*>& inner) {
  const Node* shape = graph.producer(name, "Shape");
  if (shape == nullptr || shape->inputs.front() != x) return false;
  if (int_attribute(*shape, "start", 0) != 0 || shape->find("end") != nullptr) return false;
  if (graph.readers(name) == 1) inner.push_back(shape);
  return true;
}

// Reshape(x, [0, groups, -1]).
std::optional<Groups> match_grouping(const PatternGraph& graph, const std::string& name) {
  const Node* reshape = graph.producer(name, "Reshape");
  if (reshape == nullptr || reshape->inputs.size() != 2) return std::nullopt;
  const auto shape = graph.integers(reshape->inputs[1]);
  if (!shape || shape->size() != 3 || (*shape)[0] != 0 || (*shape)[1] <= 0 || (*shape)[2] != -1 ||
      int_attribute(*reshape, "allowzero", 0) != 0)
    return std::nullopt;
  return Groups{reshape->inputs[0], (*shape)[1], 1e-5F, {reshape}};
}

std::optional<Groups> match_groups(const PatternGraph& graph, const std::string& name) {
  const Node* back = graph.producer(name, "Reshape");
  if (back == nullptr || back->inputs.size() != 2) return std::nullopt;
  const Node* norm = graph.producer(back->inputs[0], "InstanceNormalization");
  if (norm == nullptr || norm->inputs.size() != 3) return std::nullopt;
  auto groups = match_grouping(graph, norm->inputs[0]);
  if (!groups || !is_shape_of(graph, back->inputs[1], groups->x, groups->inner))
    return std::nullopt;
  if (!graph.is_filled(norm->inputs[1], 1) || !graph.is_filled(norm->inputs[2], 0))
    return std::nullopt;
  if (const Attribute* epsilon = norm->find("epsilon")) {
    if (const float* value = std::get_if<float>(&epsilon->value)) groups->epsilon = *value;
  }
  groups->inner.insert(groups->inner.end(), {back, norm});
  return groups;
}

/// A weight of the channels, which is broadcast over the dimensions after them.
struct ChannelWeight {
  std::string name;
  bool is_vector = false;
  std::vector<const Node*> inner;
};

std::optional<ChannelWeight> match_unsqueezed(const PatternGraph& graph, const Node& node,
                                              std::int64_t following) {
  const Tensor* tensor = graph.initializer(node.inputs.front());
  auto axes = graph.axes(node);
  if (tensor == nullptr || tensor->dims.size() != 1 || !axes) return std::nullopt;
  std::sort(axes->begin(), axes->end());
  if (static_cast<std::int64_t>(axes->size()) != following) return std::nullopt;
  for (std::int64_t i = 0; i < following; ++i) {
    if ((*axes)[static_cast<std::size_t>(i)] != i + 1) return std::nullopt;
  }
  return ChannelWeight{tensor->name, true, {&node}};
}

// `following` is the number of dimensions after the channels.
std::optional<ChannelWeight> match_weight(const PatternGraph& graph, const std::string& name,
                                          std::int64_t following) {
  const Node* node = graph.producer(name);
  if (node != nullptr && (is(*node, "CastLike", 2) || is(*node, "Cast", 1))) {
    // A cast to the type of the data, which a weight already has unless it was converted for
    // storage.
    const Tensor* source = graph.initializer(node->inputs[0]);
    const Node* before = graph.producer(node->inputs[0], "Unsqueeze");
    if (before != nullptr) source = graph.initializer(before->inputs.front());
    if (source == nullptr || source->type != ElementType::float32) return std::nullopt;
    auto inside = match_weight(graph, node->inputs[0], following);
    if (inside) inside->inner.push_back(node);
    return inside;
  }
  if (node != nullptr && node->op_type == "Unsqueeze" && node->domain.empty())
    return match_unsqueezed(graph, *node, following);
  const Tensor* tensor = graph.initializer(name);
  if (tensor == nullptr || static_cast<std::int64_t>(tensor->dims.size()) != following + 1)
    return std::nullopt;
  const bool only_channels = std::all_of(tensor->dims.begin() + 1, tensor->dims.end(),
                                         [](std::int64_t dim) { return dim == 1; });
  if (!only_channels) return std::nullopt;
  return ChannelWeight{name, tensor->dims.size() == 1, {}};
}

// The weight as a vector, which needs a node if the file has it in another shape.
std::string vector_of(const Node& root, const ChannelWeight& weight, const std::string& suffix,
                      std::vector<Node>& nodes) {
  if (weight.is_vector) return weight.name;
  const std::int64_t all[] = {-1};
  Node shape = node_before(root, "Constant", 13, {}, suffix + "_shape");
  set_attribute(shape, "value", make_tensor({1}, all));
  nodes.push_back(shape);
  nodes.push_back(node_before(root, "Reshape", 14, {weight.name, shape.outputs.front()}, suffix));
  return nodes.back().outputs.front();
}

Match group_norm(const Node& root, Groups groups, const ChannelWeight& scale,
                 const ChannelWeight& bias) {
  Match match{std::move(groups.inner), {}};
  for (const ChannelWeight* weight : {&scale, &bias})
    match.inner.insert(match.inner.end(), weight->inner.begin(), weight->inner.end());
  const std::string scale_name = vector_of(root, scale, "scale", match.replacement);
  const std::string bias_name = vector_of(root, bias, "bias", match.replacement);
  match.replacement.push_back(
      node_like(root, "GroupNormalization", 21, {groups.x, scale_name, bias_name}));
  set_attribute(match.replacement.back(), "num_groups", groups.count);
  set_attribute(match.replacement.back(), "epsilon", groups.epsilon);
  return match;
}

}  // namespace

std::optional<Match> match_group_norm(const PatternGraph& graph, const Node& root) {
  if (!is(root, "Add", 2)) return std::nullopt;
  for (const std::size_t place : {0, 1}) {
    const Node* product = graph.producer(root.inputs[place], "Mul");
    if (product == nullptr || product->inputs.size() != 2) continue;
    for (const std::size_t side : {0, 1}) {
      auto groups = match_groups(graph, product->inputs[side]);
      const auto rank = groups ? graph.rank(groups->x) : std::nullopt;
      if (!rank || *rank < 2) continue;
      const auto scale = match_weight(graph, product->inputs[1 - side], *rank - 2);
      const auto bias = match_weight(graph, root.inputs[1 - place], *rank - 2);
      if (!scale || !bias) continue;
      groups->inner.push_back(product);
      return group_norm(root, std::move(*groups), *scale, *bias);
    }
  }
  return std::nullopt;
}

}  // namespace decent::onnx
