// Dropout in place and stochastic depth, which PyTorch's exporters write as x *
// Div(Cast(RandomUniformLike(..) < keep), keep). As plain random numbers they would be drawn in
// evaluation, too; as a Dropout the trainer switches them.

#include <cmath>

#include "decent/onnx/format/elements.h"
#include "decent/onnx/patterns/pattern_matchers.h"

namespace decent::onnx {
namespace {

struct Mask {
  std::string shaped_like;  // a tensor that has the mask's shape
  double keep = 0;
  std::vector<const Node*> inner;
  RandomMask in_file;
};

const Node* producer_of_cast(const PatternGraph& graph, const std::string& name) {
  const Node* node = graph.producer(name);
  const bool casts = node != nullptr && (is(*node, "Cast", 1) || is(*node, "CastLike", 2));
  return casts ? node : nullptr;
}

std::optional<Mask> match_mask(const PatternGraph& graph, const std::string& name) {
  const Node* division = graph.producer(name, "Div");
  if (division == nullptr || division->inputs.size() != 2) return std::nullopt;
  const auto keep = graph.scalar(division->inputs[1]);
  const Node* cast = producer_of_cast(graph, division->inputs[0]);
  const Node* less = cast == nullptr ? nullptr : graph.producer(cast->inputs[0], "Less");
  if (!keep || less == nullptr || less->inputs.size() != 2) return std::nullopt;
  const Node* random = graph.producer(less->inputs[0], "RandomUniformLike");
  if (random == nullptr || !graph.is_scalar(less->inputs[1], *keep)) return std::nullopt;
  if (float_attribute(*random, "low", 0) != 0 || float_attribute(*random, "high", 1) != 1)
    return std::nullopt;
  if (!(*keep > 0 && *keep < 1)) return std::nullopt;
  Mask mask{random->inputs.front(),
            *keep,
            {division, cast, less, random},
            {division->field, cast->field, random->field, {less->field}}};
  // dynamo's exporter converts the probability to the type of the random numbers.
  const Node* converted = producer_of_cast(graph, less->inputs[1]);
  if (converted != nullptr && converted->inputs.back() == less->inputs[0]) {
    mask.inner.push_back(converted);
    mask.in_file.others.push_back(converted->field);
  }
  return mask;
}

// The integers of the mask's shape, if its tensor was made from them.
std::string shape_of(const PatternGraph& graph, std::string name) {
  while (const Node* cast = producer_of_cast(graph, name)) name = cast->inputs[0];
  if (const Node* expand = graph.producer(name, "Expand")) {
    if (graph.scalar(expand->inputs.front()) && expand->inputs.size() == 2)
      return expand->inputs[1];
  }
  const Node* filled = graph.producer(name, "ConstantOfShape");
  return filled == nullptr ? "" : filled->inputs.front();
}

bool is_whole_shape_of(const PatternGraph& graph, const std::string& shape, const std::string& x) {
  const Node* node = graph.producer(shape, "Shape");
  return node != nullptr && node->inputs.front() == x && int_attribute(*node, "start", 0) == 0 &&
         node->find("end") == nullptr;
}

// The ratio that the model's author wrote: 0.2 for 1 - float(0.8).
double ratio_of(double keep) { return std::round((1 - keep) * 1e6) / 1e6; }

Node constant(const Node& root, const std::string& suffix, Attribute::Value value,
              const std::string& attribute) {
  Node node = node_before(root, "Constant", 13, {}, suffix);
  set_attribute(node, attribute, std::move(value));
  return node;
}

}  // namespace

std::optional<Match> match_dropout(const PatternGraph& graph, const Node& root) {
  if (!is(root, "Mul", 2)) return std::nullopt;
  for (const std::size_t place : {0, 1}) {
    auto mask = match_mask(graph, root.inputs[place]);
    if (!mask) continue;
    const std::string& x = root.inputs[1 - place];
    Match match{std::move(mask->inner), {}, std::move(mask->in_file)};
    std::vector<Node>& nodes = match.replacement;
    nodes.push_back(
        constant(root, "ratio", static_cast<float>(ratio_of(mask->keep)), "value_float"));
    const std::string ratio = nodes.back().outputs.front();
    std::string shape = shape_of(graph, mask->shaped_like);
    if (mask->shaped_like == x || is_whole_shape_of(graph, shape, x)) {
      nodes.push_back(node_like(root, "Dropout", 13, {x, ratio}));
      return match;
    }
    // One number covers several elements, such as a whole sample: then x is multiplied by ones with
    // dropout.
    if (shape.empty()) {
      nodes.push_back(node_before(root, "Shape", 13, {mask->shaped_like}, "shape"));
      shape = nodes.back().outputs.front();
    }
    nodes.push_back(constant(root, "one", 1.0F, "value_float"));
    nodes.push_back(
        node_before(root, "CastLike", 15, {nodes.back().outputs.front(), x}, "one_like"));
    nodes.push_back(node_before(root, "Expand", 13, {nodes.back().outputs.front(), shape}, "ones"));
    nodes.push_back(
        node_before(root, "Dropout", 13, {nodes.back().outputs.front(), ratio}, "kept"));
    nodes.push_back(node_like(root, "Mul", 14, {x, nodes.back().outputs.front()}));
    return match;
  }
  return std::nullopt;
}

}  // namespace decent::onnx
