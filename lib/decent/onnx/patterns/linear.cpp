// x W^T + b as torch.linear: one matrix product that adds the bias, while MatMul and Add would need
// another pass over the result in each direction.

#include "decent/onnx/format/elements.h"
#include "decent/onnx/patterns/pattern_matchers.h"
#include "decent/onnx/patterns/patterns.h"

namespace decent::onnx {
namespace {

using Integers = std::vector<std::int64_t>;

/// A matrix of the file, [features out, features in], or [features in, features out] if the file
/// already has it transposed.
struct LinearWeight {
  const Tensor* tensor = nullptr;
  bool is_transposed = false;
  const Node* transpose = nullptr;  // from [out, in] to [in, out]
};

const Tensor* matrix(const PatternGraph& graph, const std::string& name) {
  const Tensor* tensor = graph.initializer(name);
  const bool fits = tensor != nullptr && tensor->dims.size() == 2 && is_floating(tensor->type);
  return fits ? tensor : nullptr;
}

LinearWeight weight_of(const PatternGraph& graph, const std::string& name) {
  if (const Tensor* tensor = matrix(graph, name)) return {tensor, true, nullptr};
  const Node* transpose = graph.producer(name, "Transpose");
  if (transpose == nullptr) return {};
  const Attribute* perm = transpose->find("perm");
  const auto* axes = perm == nullptr ? nullptr : std::get_if<Integers>(&perm->value);
  if (axes != nullptr && *axes != Integers{1, 0}) return {};
  return {matrix(graph, transpose->inputs.front()), false, transpose};
}

bool is_bias(const PatternGraph& graph, const std::string& name, const LinearWeight& weight) {
  const Tensor* bias = graph.initializer(name);
  const std::int64_t features = weight.tensor->dims[weight.is_transposed ? 1 : 0];
  return bias != nullptr && bias->dims == Integers{features} && bias->type == weight.tensor->type;
}

}  // namespace

std::optional<Match> match_linear(const PatternGraph& graph, const Node& root) {
  if (!is(root, "Add", 2)) return std::nullopt;
  for (const std::size_t place : {0, 1}) {
    const Node* product = graph.producer(root.inputs[place], "MatMul");
    if (product == nullptr || product->inputs.size() != 2) continue;
    const LinearWeight weight = weight_of(graph, product->inputs[1]);
    const std::string& bias = root.inputs[1 - place];
    if (weight.tensor == nullptr || !is_bias(graph, bias, weight)) continue;
    Match match{{product},
                {node_like(root, "Linear", 0, {product->inputs[0], weight.tensor->name, bias})}};
    match.replacement.back().domain = kPatternDomain;
    // The names of weights come from the node that multiplies.
    match.replacement.back().name = product->name;
    set_attribute(match.replacement.back(), "transposed", std::int64_t{weight.is_transposed});
    if (weight.transpose != nullptr && graph.readers(product->inputs[1]) == 1)
      match.inner.push_back(weight.transpose);
    return match;
  }
  return std::nullopt;
}

}  // namespace decent::onnx
