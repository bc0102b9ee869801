#include "decent/onnx/patterns/pattern_graph.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "decent/onnx/format/elements.h"
#include "decent/onnx/graph/uses.h"

namespace decent::onnx {
namespace {

constexpr std::size_t kDeepestPattern = 64;

// The result has the broadcast rank of the inputs.
bool is_elementwise(std::string_view op) {
  static constexpr std::array<std::string_view, 22> kNames = {
      "Pow",       "Sqrt",        "Add",       "Sub",     "Mul",      "Div",   "Relu", "Sigmoid",
      "Tanh",      "Gelu",        "HardSwish", "Clip",    "Elu",      "Swish", "Mish", "Where",
      "LeakyRelu", "HardSigmoid", "Softplus",  "Dropout", "Identity", "Cast"};
  return std::find(kNames.begin(), kNames.end(), op) != kNames.end();
}

// The result has the rank of input 0.
bool keeps_rank(std::string_view op) {
  static constexpr std::array<std::string_view, 12> kNames = {"BatchNormalization",
                                                              "LayerNormalization",
                                                              "GroupNormalization",
                                                              "InstanceNormalization",
                                                              "MaxPool",
                                                              "AveragePool",
                                                              "Softmax",
                                                              "GlobalAveragePool",
                                                              "Slice",
                                                              "CastLike",
                                                              "Concat",
                                                              "Pad"};
  return std::find(kNames.begin(), kNames.end(), op) != kNames.end();
}

}  // namespace

bool is_near(double value, double expected) {
  return std::abs(value - expected) <= 1e-6 * std::abs(expected);
}

std::int64_t int_attribute(const Node& node, std::string_view name, std::int64_t otherwise) {
  const Attribute* attribute = node.find(name);
  const auto* value = attribute == nullptr ? nullptr : std::get_if<std::int64_t>(&attribute->value);
  return value == nullptr ? otherwise : *value;
}

float float_attribute(const Node& node, std::string_view name, float otherwise) {
  const Attribute* attribute = node.find(name);
  const auto* value = attribute == nullptr ? nullptr : std::get_if<float>(&attribute->value);
  return value == nullptr ? otherwise : *value;
}

const std::string* other_input(const Node& node, const std::string& name) {
  if (node.inputs.size() != 2) return nullptr;
  if (node.inputs[0] == name) return &node.inputs[1];
  return node.inputs[1] == name ? &node.inputs[0] : nullptr;
}

const std::string* input_beside(const PatternGraph& graph, const Node& node, double value) {
  if (node.inputs.size() != 2) return nullptr;
  if (graph.is_scalar(node.inputs[1], value)) return &node.inputs[0];
  return graph.is_scalar(node.inputs[0], value) ? &node.inputs[1] : nullptr;
}

PatternGraph::PatternGraph(const Graph& graph, std::int64_t opset)
    : opset_(opset), constants_(graph, [this](const std::string& name) { return producer(name); }) {
  for (const Tensor& tensor : graph.initializers) initializers_[tensor.name] = &tensor;
  for (const Node& node : graph.nodes) {
    for (const std::string& name : node.outputs) producers_[name] = &node;
  }
  for (const auto* list : {&graph.inputs, &graph.outputs, &graph.value_infos}) {
    for (const ValueInfo& info : *list) {
      if (info.shape && info.kind == ValueInfo::Kind::tensor)
        ranks_[info.name] = static_cast<std::int64_t>(info.shape->size());
    }
  }
  count_readers(graph);
}

void PatternGraph::count_readers(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    for (const std::string& name : node.inputs) ++readers_[name];
    for (const Graph* nested : nested_graphs(node)) count_readers(*nested);
  }
  for (const ValueInfo& output : graph.outputs) ++readers_[output.name];
}

const Node* PatternGraph::producer(const std::string& name) const {
  const auto found = name.empty() ? producers_.end() : producers_.find(name);
  return found == producers_.end() ? nullptr : found->second;
}

const Node* PatternGraph::producer(const std::string& name, std::string_view op_type) const {
  const Node* node = producer(name);
  const bool matches = node != nullptr && node->op_type == op_type && node->domain.empty() &&
                       node->outputs.front() == name;
  return matches ? node : nullptr;
}

std::size_t PatternGraph::readers(const std::string& name) const {
  const auto found = readers_.find(name);
  return found == readers_.end() ? 0 : found->second;
}

const Tensor* PatternGraph::initializer(const std::string& name) const {
  const auto found = initializers_.find(name);
  return found == initializers_.end() ? nullptr : found->second;
}

std::optional<double> PatternGraph::scalar(const std::string& name) const {
  const SmallConstant* value = constant(name);
  if (value == nullptr || value->values.size() != 1 || value->dims.size() > 1) return std::nullopt;
  return value->values.front();
}

bool PatternGraph::is_scalar(const std::string& name, double value) const {
  const auto number = scalar(name);
  if (!number) return false;
  const SmallConstant* known = constant(name);
  const double precision = known->type == ElementType::float16    ? 1e-3
                           : known->type == ElementType::bfloat16 ? 8e-3
                                                                  : 1e-6;
  return std::abs(*number - value) <= precision * std::abs(value);
}

bool PatternGraph::is_filled(const std::string& name, double value) const {
  const SmallConstant* known = constant(name);
  return known != nullptr && std::all_of(known->values.begin(), known->values.end(),
                                         [&](double each) { return each == value; });
}

std::optional<std::vector<std::int64_t>> PatternGraph::integers(const std::string& name) const {
  const SmallConstant* known = constant(name);
  if (known == nullptr || !is_integer(known->type)) return std::nullopt;
  std::vector<std::int64_t> integers;
  for (const double value : known->values) {
    if (!(std::abs(value) < 1e15)) return std::nullopt;  // beyond what a double counts exactly
    integers.push_back(static_cast<std::int64_t>(value));
  }
  return integers;
}

std::optional<std::vector<std::int64_t>> PatternGraph::axes(const Node& node) const {
  if (node.inputs.size() > 1) return integers(node.inputs[1]);
  const Attribute* attribute = node.find("axes");
  const auto* list =
      attribute == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(&attribute->value);
  return list == nullptr ? std::nullopt : std::optional(*list);
}

std::optional<std::int64_t> PatternGraph::rank(const std::string& name) const {
  return rank(name, 0);
}

std::optional<std::int64_t> PatternGraph::rank(const std::string& name, std::size_t depth) const {
  if (const auto known = ranks_.find(name); known != ranks_.end()) return known->second;
  if (const Tensor* tensor = initializer(name))
    return static_cast<std::int64_t>(tensor->dims.size());
  const Node* node = producer(name);
  if (node == nullptr || node->inputs.empty() || depth > kDeepestPattern) return std::nullopt;
  if (const auto known = inferred_.find(name); known != inferred_.end()) return known->second;
  return inferred_[name] = infer_rank(*node, depth);
}

std::optional<std::int64_t> PatternGraph::infer_rank(const Node& node, std::size_t depth) const {
  const std::string& op = node.op_type;
  if (op == "Conv" && node.inputs.size() > 1) return rank(node.inputs[1], depth + 1);
  if (const Attribute* perm = op == "Transpose" ? node.find("perm") : nullptr) {
    const auto* list = std::get_if<std::vector<std::int64_t>>(&perm->value);
    if (list != nullptr) return static_cast<std::int64_t>(list->size());
  }
  if (op == "ReduceMean" && int_attribute(node, "keepdims", 1) == 1)
    return rank(node.inputs[0], depth + 1);
  if (op == "Gemm") return 2;
  if (keeps_rank(op)) return rank(node.inputs[0], depth + 1);
  if (!is_elementwise(op)) return std::nullopt;
  std::int64_t largest = 0;
  for (const std::string& input : node.inputs) {
    const SmallConstant* small = constant(input);
    const auto each = small ? std::optional(static_cast<std::int64_t>(small->dims.size()))
                            : rank(input, depth + 1);
    if (!each) return std::nullopt;
    largest = std::max(largest, *each);
  }
  return largest;
}

namespace {

void add_factor(const PatternGraph& graph, const std::string& name, Product& product);

void add_factors(const PatternGraph& graph, const Node& node, Product& product) {
  add_factor(graph, node.inputs[0], product);
  if (node.op_type == "Mul") {
    add_factor(graph, node.inputs[1], product);
  } else {
    product.scale /= *graph.scalar(node.inputs[1]);
  }
}

bool is_product(const PatternGraph& graph, const Node& node) {
  if (!node.domain.empty() || node.inputs.size() != 2) return false;
  return node.op_type == "Mul" || (node.op_type == "Div" && graph.scalar(node.inputs[1]));
}

void add_factor(const PatternGraph& graph, const std::string& name, Product& product) {
  constexpr std::size_t kMaxFactors = 8;
  if (const auto number = graph.scalar(name)) {
    product.scale *= *number;
    return;
  }
  const Node* node = graph.producer(name);
  const bool inside = node != nullptr && is_product(graph, *node) && graph.readers(name) == 1 &&
                      product.inner.size() < kMaxFactors;
  if (!inside) {
    product.factors.push_back(name);
    return;
  }
  product.inner.push_back(node);
  add_factors(graph, *node, product);
}

}  // namespace

Product product_of(const PatternGraph& graph, const Node& root) {
  Product product;
  if (is_product(graph, root)) add_factors(graph, root, product);
  return product;
}

}  // namespace decent::onnx
