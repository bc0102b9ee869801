#include "decent/onnx/graph/hoist_constants.h"

#include <cstring>
#include <map>
#include <optional>

#include "decent/onnx/format/elements.h"
#include "decent/onnx/format/walk.h"

namespace decent::onnx {
namespace {

// A list of floats as a tensor of one dimension, whose elements are written back in place.
Tensor tensor_of(const Attribute& attribute, const std::vector<float>& values) {
  auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(float));
  std::memcpy(bytes->data(), values.data(), bytes->size());
  Tensor tensor;
  tensor.type = ElementType::float32;
  tensor.dims = {static_cast<std::int64_t>(values.size())};
  tensor.encoding = Encoding::typed;
  tensor.decoded = std::move(bytes);
  tensor.fields = attribute.number_fields;
  return tensor;
}

// The tensor of a Constant node, under the name of its output, if it is floating-point.
std::optional<Tensor> floating_constant(const Node& node) {
  if (node.op_type != "Constant" || !node.domain.empty() || node.attributes.size() != 1)
    return std::nullopt;
  if (node.outputs.size() != 1 || node.outputs.front().empty()) return std::nullopt;
  const Attribute& attribute = node.attributes.front();
  std::optional<Tensor> tensor;
  if (const auto* value = std::get_if<Tensor>(&attribute.value)) {
    tensor = *value;
  } else if (const auto* list = std::get_if<std::vector<float>>(&attribute.value);
             list != nullptr && !list->empty()) {
    tensor = tensor_of(attribute, *list);
  }
  if (!tensor || !is_floating(tensor->type)) return std::nullopt;
  tensor->name = node.outputs.front();
  return tensor;
}

class Hoisting {
 public:
  explicit Hoisting(Model& model) : model_(model) {
    for_each_node(model.graph.nodes, [&](const Node& node) {
      const auto tensor = floating_constant(node);
      if (tensor && !tensor->fields.empty()) ++copies_[tensor->fields.front().begin];
    });
  }

  void run(Graph& graph) {
    std::vector<Node> nodes;
    for (Node& node : graph.nodes) {
      std::optional<Tensor> tensor = floating_constant(node);
      if (tensor) {
        tensor->is_literal = model_.producer_name == "pytorch";
        hoist(std::move(*tensor), graph, nodes);
        continue;
      }
      for (Attribute& attribute : node.attributes) {
        auto* nested = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
        if (nested != nullptr && *nested) run(**nested);
      }
      nodes.push_back(std::move(node));
    }
    graph.nodes = std::move(nodes);
  }

 private:
  void hoist(Tensor tensor, Graph& graph, std::vector<Node>& nodes) {
    const bool is_shared = !tensor.fields.empty() && copies_[tensor.fields.front().begin] > 1;
    if (!is_shared) {
      graph.initializers.push_back(std::move(tensor));
      return;
    }
    // One initializer for all calls, in the graph that all of them can see.
    const auto [first, is_new] = names_.emplace(tensor.fields.front().begin, tensor.name);
    if (!is_new) {
      nodes.push_back(identity(first->second, tensor.name));
    } else {
      model_.graph.initializers.push_back(std::move(tensor));
    }
  }

  // Its opset distinguishes it from the Identity nodes of exporters, which mark separate tensors.
  Node identity(const std::string& from, const std::string& to) const {
    Node node;
    node.name = to;
    node.op_type = "Identity";
    node.inputs = {from};
    node.outputs = {to};
    node.opset = model_.opset();
    return node;
  }

  Model& model_;
  std::map<std::uint64_t, std::size_t> copies_;  // by place in the file
  std::map<std::uint64_t, std::string> names_;
};

}  // namespace

void hoist_constants(Model& model) { Hoisting(model).run(model.graph); }

}  // namespace decent::onnx
