#include "decent/onnx/graph/loop_states.h"

#include <algorithm>

namespace decent::onnx {
namespace {

const Node* producer(const Graph& graph, const std::string& name) {
  if (name.empty()) return nullptr;  // an input that is left out
  const auto found = std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
    return std::find(node.outputs.begin(), node.outputs.end(), name) != node.outputs.end();
  });
  return found == graph.nodes.end() ? nullptr : &*found;
}

std::string origin(const Graph& graph, std::string name);

// The outer value that both branches of an If return unchanged, or "".
std::string origin_in_branches(const Node& node, std::size_t output) {
  const Graph* yes = body_of(node, "then_branch");
  const Graph* no = body_of(node, "else_branch");
  if (yes == nullptr || no == nullptr) return "";
  if (output >= yes->outputs.size() || output >= no->outputs.size()) return "";
  const std::string name = origin(*yes, yes->outputs[output].name);
  return producer(*yes, name) == nullptr && name == origin(*no, no->outputs[output].name) ? name
                                                                                          : "";
}

// The value that output `output` of a node passes on unchanged, or "".
std::string handed_on(const Node& node, std::size_t output) {
  if (!node.domain.empty()) return "";
  if (node.op_type == "Identity" && node.inputs.size() == 1) return node.inputs.front();
  if (node.op_type == "If") return origin_in_branches(node, output);
  for (const LoopState& state : unchanged_states(node)) {
    if (state.output == output) return node.inputs[state.input];
  }
  return "";
}

// The value that `name` originally is, before all nodes that pass it on unchanged.
std::string origin(const Graph& graph, std::string name) {
  while (const Node* node = producer(graph, name)) {
    const auto at = std::find(node->outputs.begin(), node->outputs.end(), name);
    const std::string before =
        handed_on(*node, static_cast<std::size_t>(at - node->outputs.begin()));
    if (before.empty()) break;
    name = before;
  }
  return name;
}

struct States {
  std::size_t count = 0;
  std::size_t first_input = 0;  // of the node and of its body
  std::size_t first_body_output = 0;
};

States states_of_loop(const Node& node, const Graph& body) {
  const std::size_t count = node.inputs.size() < 2 ? 0 : node.inputs.size() - 2;
  if (body.inputs.size() != count + 2 || body.outputs.size() < count + 1) return {};
  return {count, 2, 1};
}

// How many inputs of a Scan its body gets element by element; 0 if the attribute does not fit the
// number of inputs.
std::size_t scanned_inputs(const Node& node) {
  const Attribute* attribute = node.find("num_scan_inputs");
  const auto* count = attribute == nullptr ? nullptr : std::get_if<std::int64_t>(&attribute->value);
  const auto inputs = static_cast<std::int64_t>(node.inputs.size());
  return count == nullptr || *count < 0 || *count > inputs ? 0 : static_cast<std::size_t>(*count);
}

States states_of_scan(const Node& node, const Graph& body) {
  const std::size_t scanned = scanned_inputs(node);
  if (scanned == 0 || body.inputs.size() != node.inputs.size()) return {};
  const std::size_t count = node.inputs.size() - scanned;
  return body.outputs.size() < count ? States{} : States{count, 0, 0};
}

}  // namespace

const Graph* body_of(const Node& node, std::string_view attribute) {
  const Attribute* found = node.find(attribute);
  if (found == nullptr) return nullptr;
  const auto* graph = std::get_if<std::shared_ptr<Graph>>(&found->value);
  return graph == nullptr ? nullptr : graph->get();
}

std::vector<LoopState> loop_states(const Node& node) {
  const Graph* body = body_of(node, "body");
  const bool is_loop = node.op_type == "Loop";
  if (body == nullptr || !node.domain.empty() || (!is_loop && node.op_type != "Scan")) return {};
  const States known = is_loop ? states_of_loop(node, *body) : states_of_scan(node, *body);
  std::vector<LoopState> states;
  for (std::size_t i = 0; i < known.count; ++i) {
    LoopState& state = states.emplace_back();
    state.input = state.body_input = known.first_input + i;
    state.body_output = known.first_body_output + i;
    state.output = i;
    const std::string& given = body->outputs[state.body_output].name;
    state.is_unchanged = origin(*body, given) == body->inputs[state.body_input].name;
  }
  return states;
}

std::vector<LoopState> unchanged_states(const Node& node) {
  std::vector<LoopState> states = loop_states(node);
  std::erase_if(states, [](const LoopState& state) { return !state.is_unchanged; });
  return states;
}

std::vector<ElementInput> element_inputs(const Node& node) {
  const Graph* body = body_of(node, "body");
  if (body == nullptr || !node.domain.empty() || body->inputs.size() != node.inputs.size())
    return {};
  std::size_t first = node.inputs.size();
  if (node.op_type == "SequenceMap") first = 0;
  if (node.op_type == "Scan") first -= scanned_inputs(node);
  std::vector<ElementInput> elements;
  for (std::size_t i = first; i < node.inputs.size(); ++i) elements.push_back({i, i});
  return elements;
}

}  // namespace decent::onnx
