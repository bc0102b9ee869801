#include "decent/model/onnx/uses.h"

#include <algorithm>
#include <limits>

namespace decent::onnx {
namespace {

constexpr ValueId kNone = std::numeric_limits<ValueId>::max();

// Nodes without inputs that are not constants.
bool is_random(const Node& node) { return node.op_type.rfind("Random", 0) == 0; }

}  // namespace

std::vector<const Graph*> nested_graphs(const Node& node) {
  std::vector<const Graph*> graphs;
  for (const Attribute& attribute : node.attributes) {
    const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute.value);
    if (graph != nullptr && *graph) graphs.push_back(graph->get());
  }
  return graphs;
}

Uses::Uses(const Graph& graph) {
  scopes_.emplace_back();
  for (const ValueInfo& input : graph.inputs) add(scopes_.back(), input.name, true);
  visit_graph(graph);
  for (const ValueInfo& output : graph.outputs) {
    if (const ValueId* value = find(output.name)) values_[*value].readers.push_back({});
  }
  scopes_.clear();
}

const Tensor* Uses::initializer(const Node& node, std::size_t input) const {
  const std::vector<ValueId>& inputs = inputs_.at(&node);
  if (input >= inputs.size()) return nullptr;
  const auto found = tensor_of_.find(inputs[input]);
  return found == tensor_of_.end() ? nullptr : found->second;
}

bool Uses::input_varies(const Node& node, std::size_t input) const {
  const std::vector<ValueId>& inputs = inputs_.at(&node);
  if (input >= inputs.size() || inputs[input] == kNone) return false;
  return values_[inputs[input]].varies;
}

ValueId Uses::add(Scope& scope, const std::string& name, bool varies) {
  values_.emplace_back().varies = varies;
  const ValueId value = values_.size() - 1;
  if (!name.empty()) scope.insert_or_assign(name, value);
  return value;
}

const ValueId* Uses::find(const std::string& name) const {
  if (name.empty()) return nullptr;
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->find(name);
    if (found != scope->end()) return &found->second;
  }
  return nullptr;
}

void Uses::visit_graph(const Graph& graph) {
  for (const Tensor& tensor : graph.initializers) {
    const ValueId value = add(scopes_.back(), tensor.name, false);
    initializers_.push_back(&tensor);
    tensors_[&tensor] = value;
    tensor_of_[value] = &tensor;
  }
  for (const Node& node : graph.nodes) visit_node(node);
}

void Uses::visit_node(const Node& node) {
  nodes_.push_back(&node);
  bool varies = is_random(node);
  std::vector<ValueId>& inputs = inputs_[&node];
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId* value = find(node.inputs[i]);
    inputs.push_back(value == nullptr ? kNone : *value);
    if (value == nullptr) continue;
    values_[*value].readers.push_back({&node, i});
    varies = varies || values_[*value].varies;
  }
  std::vector<ValueId> outputs;
  for (const std::string& name : node.outputs) outputs.push_back(add(scopes_.back(), name, varies));
  outputs_[&node] = std::move(outputs);
  for (const Graph* graph : nested_graphs(node)) visit_nested(*graph, node);
}

void Uses::visit_nested(const Graph& graph, const Node& owner) {
  scopes_.emplace_back();
  for (const ValueInfo& input : graph.inputs) add(scopes_.back(), input.name, true);
  visit_graph(graph);
  const std::vector<ValueId>& given = outputs_.at(&owner);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId* value = find(graph.outputs[i].name);
    if (value == nullptr) continue;
    // A Loop's outputs are other values than its body's: the last of them, or all one on another.
    if (owner.op_type == "If" && i < given.size()) {
      values_[*value].handed_to.push_back(given[i]);
      values_[given[i]].varies = values_[given[i]].varies || values_[*value].varies;
    } else {
      values_[*value].readers.push_back({&owner, owner.inputs.size() + i});
      for (const ValueId each : given) values_[each].varies = true;
    }
  }
  scopes_.pop_back();
}

}  // namespace decent::onnx
