#include "decent/onnx/graph/uses.h"

#include <algorithm>
#include <limits>

namespace decent::onnx {
namespace {

constexpr ValueId kNoValue = std::numeric_limits<ValueId>::max();

// Operators without inputs whose results are not constant.
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

std::vector<std::string> names_read(const Node& node) {
  std::vector<std::string> names(node.inputs.begin(), node.inputs.end());
  for (const Graph* graph : nested_graphs(node)) {
    for (const ValueInfo& output : graph->outputs) names.push_back(output.name);
    for (const Node& inner : graph->nodes) {
      const std::vector<std::string> read = names_read(inner);
      names.insert(names.end(), read.begin(), read.end());
    }
  }
  return names;
}

Uses::Uses(const Graph& graph) {
  scopes_.emplace_back();
  for (const ValueInfo& input : graph.inputs) add(input.name, true);
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
  if (input >= inputs.size() || inputs[input] == kNoValue) return false;
  return values_[inputs[input]].varies;
}

ValueId Uses::add(const std::string& name, bool varies) {
  values_.emplace_back().varies = varies;
  bind(name, values_.size() - 1);
  return values_.size() - 1;
}

void Uses::bind(const std::string& name, ValueId value) {
  if (!name.empty()) scopes_.back().insert_or_assign(name, value);
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
    const ValueId value = add(tensor.name, false);
    initializers_.push_back(&tensor);
    tensors_[&tensor] = value;
    tensor_of_[value] = &tensor;
  }
  for (const Node& node : graph.nodes) visit_node(node);
}

// Inputs that get into a body unchanged, or element by element, are read there.
void Uses::visit_inputs(const Node& node, const std::vector<LoopState>& unchanged) {
  std::set<std::size_t> bound;
  for (const LoopState& state : unchanged) bound.insert(state.input);
  for (const ElementInput& element : element_inputs(node)) bound.insert(element.input);
  std::vector<ValueId>& inputs = inputs_[&node];
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId* value = find(node.inputs[i]);
    inputs.push_back(value == nullptr ? kNoValue : *value);
    if (value != nullptr && bound.count(i) == 0) values_[*value].readers.push_back({&node, i});
  }
}

void Uses::visit_node(const Node& node) {
  nodes_.push_back(&node);
  const std::vector<LoopState> unchanged = unchanged_states(node);
  visit_inputs(node, unchanged);
  const std::vector<ValueId>& inputs = inputs_.at(&node);
  const bool varies = is_random(node) || std::any_of(inputs.begin(), inputs.end(), [&](auto input) {
                        return input != kNoValue && values_[input].varies;
                      });
  std::vector<ValueId> outputs;
  for (const std::string& name : node.outputs) outputs.push_back(add(name, varies));
  outputs_[&node] = outputs;
  for (const Graph* graph : nested_graphs(node)) visit_nested(*graph, node, unchanged);
  for (const LoopState& state : unchanged) {
    if (state.output >= outputs.size() || inputs[state.input] == kNoValue) continue;
    outputs_[&node][state.output] = inputs[state.input];
    bind(node.outputs[state.output], inputs[state.input]);
  }
}

void Uses::visit_nested(const Graph& graph, const Node& owner,
                        const std::vector<LoopState>& unchanged) {
  scopes_.emplace_back();
  for (const ValueInfo& input : graph.inputs) add(input.name, true);
  bind_inputs(graph, owner, unchanged);
  visit_graph(graph);
  std::set<std::size_t> bound;
  for (const LoopState& state : unchanged) bound.insert(state.body_output);
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const ValueId* value = find(graph.outputs[i].name);
    if (value != nullptr && bound.count(i) == 0) give(*value, i, owner);
  }
  scopes_.pop_back();
}

// Binds the inputs of a body that are values from outside of it, or elements of such values.
void Uses::bind_inputs(const Graph& body, const Node& owner,
                       const std::vector<LoopState>& unchanged) {
  const std::vector<ValueId>& inputs = inputs_.at(&owner);
  for (const LoopState& state : unchanged) {
    if (inputs[state.input] != kNoValue)
      bind(body.inputs[state.body_input].name, inputs[state.input]);
  }
  for (const ElementInput& element : element_inputs(owner)) {
    const ValueId whole = inputs[element.input];
    if (whole == kNoValue) continue;
    const bool varies = values_[whole].varies;
    const ValueId part = add(body.inputs[element.body_input].name, varies);
    values_[whole].handed_to.push_back(part);
  }
}

// A nested graph returns `value` as its output `output`. A Loop's outputs differ from its body's:
// they are the values of the last round, or those of all rounds stacked.
void Uses::give(ValueId value, std::size_t output, const Node& owner) {
  const std::vector<ValueId>& given = outputs_.at(&owner);
  if (owner.op_type == "If" && output < given.size()) {
    values_[value].handed_to.push_back(given[output]);
    values_[given[output]].varies = values_[given[output]].varies || values_[value].varies;
  } else {
    values_[value].readers.push_back({&owner, owner.inputs.size() + output});
    for (const ValueId each : given) values_[each].varies = true;
  }
}

void keep_outputs(Graph& graph, const std::set<std::string>& names) {
  std::erase_if(graph.outputs,
                [&](const ValueInfo& output) { return names.count(output.name) == 0; });
  std::set<std::string> needed = names;
  std::vector<Node> kept;
  // Nodes come after the nodes that they need.
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool is_needed = std::any_of(
        node->outputs.begin(), node->outputs.end(),
        [&](const std::string& output) { return !output.empty() && needed.count(output) != 0; });
    if (!is_needed) continue;
    for (std::string& name : names_read(*node)) needed.insert(std::move(name));
    kept.push_back(std::move(*node));
  }
  std::reverse(kept.begin(), kept.end());
  graph.nodes = std::move(kept);
}

}  // namespace decent::onnx
