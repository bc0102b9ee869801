#pragma once
// Visits all nodes and tensors of a model, at any depth.

#include <memory>
#include <variant>
#include <vector>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// Calls `visit(nodes)` with the nodes of a graph or function, then with the nodes of each graph in
/// their attributes.
template <typename Visit>
void for_each_node_list(const std::vector<Node>& nodes, const Visit& visit) {
  visit(nodes);
  for (const Node& node : nodes) {
    for (const Attribute& attribute : node.attributes) {
      const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
      if (graph != nullptr) for_each_node_list((*graph)->nodes, visit);
    }
  }
}

/// The same for the model's graph and its functions.
template <typename Visit>
void for_each_node_list(const Model& model, const Visit& visit) {
  for_each_node_list(model.graph.nodes, visit);
  for (const Function& function : model.functions) for_each_node_list(function.nodes, visit);
}

/// Calls `visit(node)` with every node of a model or of a list, at any depth.
template <typename Nodes, typename Visit>
void for_each_node(const Nodes& from, const Visit& visit) {
  for_each_node_list(from, [&](const std::vector<Node>& nodes) {
    for (const Node& node : nodes) visit(node);
  });
}

/// Calls `visit(tensor)` with the tensors that an attribute holds.
template <typename Visit>
void for_each_tensor(const Attribute& attribute, const Visit& visit) {
  if (const auto* tensor = std::get_if<Tensor>(&attribute.value)) visit(*tensor);
  if (const auto* tensors = std::get_if<std::vector<Tensor>>(&attribute.value)) {
    for (const Tensor& tensor : *tensors) visit(tensor);
  }
  if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute.value)) {
    for (const Tensor& tensor : (*graph)->initializers) visit(tensor);
  }
}

/// Calls `visit(tensor)` with every initializer and every tensor in an attribute.
template <typename Visit>
void for_each_tensor(const Model& model, const Visit& visit) {
  for (const Tensor& tensor : model.graph.initializers) visit(tensor);
  for_each_node(model, [&](const Node& node) {
    for (const Attribute& attribute : node.attributes) for_each_tensor(attribute, visit);
  });
  for (const Function& function : model.functions) {
    for (const Attribute& attribute : function.default_attributes) {
      for_each_tensor(attribute, visit);
    }
  }
}

}  // namespace decent::onnx
