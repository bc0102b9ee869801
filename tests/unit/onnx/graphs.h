#pragma once
// Graphs for tests, built in memory.

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "decent/onnx/format/elements.h"
#include "decent/onnx/format/ir.h"

namespace decent::onnx::testing {

inline Tensor floats(const std::string& name, std::vector<std::int64_t> dims,
                     const std::vector<float>& values) {
  Tensor tensor;
  tensor.name = name;
  tensor.type = ElementType::float32;
  tensor.dims = std::move(dims);
  auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(float));
  std::memcpy(bytes->data(), values.data(), bytes->size());
  tensor.decoded = bytes;
  tensor.encoding = Encoding::typed;
  return tensor;
}

/// Different values, as weights have.
inline Tensor weight(const std::string& name, std::vector<std::int64_t> dims) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(0.25F + 0.125F * static_cast<float>(i));
  return floats(name, std::move(dims), values);
}

inline Tensor integers(const std::string& name, const std::vector<std::int64_t>& values) {
  Tensor tensor = make_tensor({static_cast<std::int64_t>(values.size())}, values);
  tensor.name = name;
  return tensor;
}

inline Node node(const std::string& op_type, std::vector<std::string> inputs,
                 std::vector<std::string> outputs, const std::string& name = "") {
  Node result;
  result.op_type = op_type;
  result.name = name;
  result.inputs = std::move(inputs);
  result.outputs = std::move(outputs);
  return result;
}

inline Node with(Node node, const std::string& name, Attribute::Value value) {
  Attribute attribute;
  attribute.name = name;
  attribute.value = std::move(value);
  node.attributes.push_back(std::move(attribute));
  return node;
}

/// A Constant node with one float.
inline Node number(const std::string& output, float value) {
  return with(node("Constant", {}, {output}), "value", floats("", {}, {value}));
}

/// A value with a rank; the dimensions are free.
inline ValueInfo value(const std::string& name, std::size_t rank = 2) {
  ValueInfo info;
  info.name = name;
  info.type = ElementType::float32;
  info.shape = std::vector<Dimension>(rank);
  return info;
}

inline Graph graph(std::vector<Tensor> initializers, std::vector<Node> nodes,
                   std::size_t input_rank = 2) {
  Graph result;
  result.initializers = std::move(initializers);
  result.nodes = std::move(nodes);
  result.inputs = {value("x", input_rank)};
  result.outputs = {value("y")};
  return result;
}

inline std::vector<std::string> operators_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& each : graph.nodes) names.push_back(each.op_type);
  return names;
}

}  // namespace decent::onnx::testing
