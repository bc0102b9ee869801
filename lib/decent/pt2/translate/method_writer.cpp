#include "decent/pt2/translate/method_writer.h"

#include <algorithm>
#include <set>

#include "decent/core/text.h"
#include "decent/pt2/analyse/nodes.h"
#include "decent/pt2/program/walk.h"
#include "decent/pt2/translate/node_context.h"
#include "decent/pt2/translate/rules.h"

namespace decent::pt2 {
namespace {

bool is_symbolic(const Argument& result) {
  return std::holds_alternative<SymIntArgument>(result) ||
         std::holds_alternative<SymFloatArgument>(result) ||
         std::holds_alternative<SymBoolArgument>(result);
}

// Whether the node makes a number that only assertions of the export read, which are left out.
bool is_unused_number(const Node& node, const std::set<std::string>& used) {
  const auto is_unused = [&](const Argument& result) {
    const std::string* name = value_name(result);
    return is_symbolic(result) && name != nullptr && used.count(*name) == 0;
  };
  return !node.outputs.empty() && std::all_of(node.outputs.begin(), node.outputs.end(), is_unused);
}

// All nodes that affect the graph's results or write somewhere, in the order of the graph.
std::vector<const Node*> needed_nodes(const Graph& graph) {
  std::set<std::string> used;
  const auto use = [&](const std::string& name) { used.insert(name); };
  for (const Argument& output : graph.outputs) for_each_value_name(output, use);
  std::vector<const Node*> needed;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    const bool only_checks = rule_of(parse_target(node->target)) == leave_out;
    if (only_checks || is_unused_number(*node, used)) continue;
    for (const NamedArgument& input : node->inputs) for_each_value_name(input.value, use);
    needed.push_back(&*node);
  }
  std::reverse(needed.begin(), needed.end());
  return needed;
}

}  // namespace

const std::string& ValueScope::text(const std::string& name) const {
  const auto found = texts_.find(name);
  if (found != texts_.end()) return found->second;
  throw Unsupported("reads " + in_quotes(name) + ", which nothing makes");
}

// If an export in eval mode writes buffers, the module does so in both modes. An export in train
// mode does not say what evaluation would write; PyTorch's own modules write nothing.
const NodeWrites* MethodWriter::training_writes(const Node& node) const {
  const auto found = analysis_.writes.find(&node);
  const bool is_always = !analysis_.is_for_both_modes || analysis_.modes.mode == ExportedMode::eval;
  return found == analysis_.writes.end() || is_always ? nullptr : &found->second;
}

void MethodWriter::add_nodes(const Graph& graph, ValueScope& scope) {
  for (const Node* node : needed_nodes(graph)) add_node(*node, graph, scope);
}

void MethodWriter::add_node(const Node& node, const Graph& graph, ValueScope& scope) {
  NodeContext context(node, graph, *this, scope);
  try {
    rule_of(context.target())(context);
  } catch (const Unsupported& reason) {
    refusals_.push_back(description_of(node) + " " + reason.what());
    context.declare_results();
  }
}

std::string MethodWriter::body(const std::string& device) const {
  return (needs_device_ ? "    device = " + device + "\n" : "") + lines_;
}

}  // namespace decent::pt2
