// The biases of recurrent layers in files of tf2onnx. Layers of Keras have one bias for each gate,
// while LSTM, GRU and RNN of ONNX add two: tf2onnx writes zeros for the second. If it were trained
// as a weight, it would double the step of their sum.

#include <algorithm>
#include <vector>

#include "decent/onnx/format/elements.h"
#include "decent/onnx/patterns/patterns.h"

namespace decent::onnx {
namespace {

constexpr std::size_t kBiasInput = 3;

// A GRU with linear_before_reset has two biases in Keras, too.
bool has_one_bias(const Node& node) {
  if (!node.domain.empty() || node.inputs.size() <= kBiasInput) return false;
  if (node.op_type == "LSTM" || node.op_type == "RNN") return true;
  if (node.op_type != "GRU") return false;
  const Attribute* before = node.find("linear_before_reset");
  const auto* value = before == nullptr ? nullptr : std::get_if<std::int64_t>(&before->value);
  return value == nullptr || *value == 0;
}

// Whether the second half of each row is zeros.
bool ends_in_zeros(const Tensor& bias) {
  if (bias.dims.size() != 2 || bias.dims[1] % 2 != 0 || !is_floating(bias.type)) return false;
  const std::vector<double> values = as_doubles(bias);
  const auto width = static_cast<std::size_t>(bias.dims[1]);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % width >= width / 2 && values[i] != 0) return false;
  }
  return !values.empty();
}

const Tensor* initializer(const Graph& graph, const std::string& name) {
  const auto found = std::find_if(graph.initializers.begin(), graph.initializers.end(),
                                  [&](const Tensor& each) { return each.name == name; });
  return found == graph.initializers.end() ? nullptr : &*found;
}

// `number` is the number of the layer, because several may share a bias.
Node holder(const Node& layer, const std::string& bias, std::size_t number) {
  Node node;
  node.name = layer.name;
  node.metadata = layer.metadata;
  node.domain = kPatternDomain;
  node.op_type = "RecurrentBias";
  node.inputs = {bias};
  node.outputs = {bias + "/held_" + std::to_string(number)};
  return node;
}

}  // namespace

std::size_t hold_second_biases(Graph& graph) {
  std::vector<Node> nodes;
  std::size_t found = 0;
  for (Node& node : graph.nodes) {
    const Tensor* bias = has_one_bias(node) ? initializer(graph, node.inputs[kBiasInput]) : nullptr;
    if (bias != nullptr && ends_in_zeros(*bias)) {
      nodes.push_back(holder(node, bias->name, found));
      *(node.inputs.begin() + kBiasInput) = nodes.back().outputs.front();
      ++found;
    }
    nodes.push_back(std::move(node));
  }
  graph.nodes = std::move(nodes);
  return found;
}

}  // namespace decent::onnx
