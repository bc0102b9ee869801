// Operators of higher order, which run parts of the program under a condition or in another state.

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "decent/pt2/translate/node_context.h"
#include "decent/pt2/translate/rules.h"

namespace decent::pt2 {
namespace {

const Graph& only_region(NodeContext& context) {
  const std::vector<const Graph*> regions = regions_of(context.node());
  if (regions.size() != 1) throw Unsupported("has not the one graph that it runs");
  return *regions.front();
}

// The value into which an operator writes and that it returns as its result at this place; nullptr
// if the result is a new value or a view.
const std::string* written_source(const Node& node, std::size_t place,
                                  const OperatorSchemas& schemas) {
  const OperatorSchema* schema = schemas.find(parse_target(node.target));
  if (schema == nullptr || place >= schema->results_in.size()) return nullptr;
  const std::optional<std::size_t> source = schema->results_in[place];
  if (!source || !schema->arguments[*source].is_written) return nullptr;
  const Argument* given = node.find(schema->arguments[*source].name);
  return given == nullptr ? nullptr : value_name(*given);
}

// The values of a region that are its inputs, perhaps with other elements: w, and the result of
// "w.clamp_(-1, 1)".
std::map<std::string, std::size_t> same_as_inputs(const Graph& region,
                                                  const OperatorSchemas& schemas) {
  std::map<std::string, std::size_t> same;
  for (std::size_t i = 0; i < region.inputs.size(); ++i) {
    if (const std::string* name = value_name(region.inputs[i])) same.emplace(*name, i);
  }
  for (const Node& node : region.nodes) {
    const std::vector<Argument> results = results_of(node);
    for (std::size_t place = 0; place < results.size(); ++place) {
      const std::string* source = written_source(node, place, schemas);
      const auto input = source == nullptr ? same.end() : same.find(*source);
      const std::string* name = value_name(results[place]);
      if (input != same.end() && name != nullptr) same.emplace(*name, input->second);
    }
  }
  return same;
}

// TorchScript could switch gradients off for some lines, but its compiler may move other lines
// across them. So the region gets its inputs without their history instead. Inputs that it returns,
// unchanged or written in place, keep their history, as in Python.
void gradient_region(NodeContext& context) {
  const std::vector<std::string> given = context.operands();
  std::vector<std::string> inputs = given;
  const std::vector<Argument> operands = operands_of(context.node());
  const bool has_gradients = context.constant<bool>(0);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (has_gradients || !std::holds_alternative<TensorArgument>(operands[i])) continue;
    const std::string detached = context.fresh_name("detached");
    context.line(detached + " = " + inputs[i] + ".detach()");
    inputs[i] = detached;
  }
  const Graph& region = only_region(context);
  std::vector<std::string> results = context.run(region, inputs);
  const auto same = same_as_inputs(region, context.schemas());
  for (std::size_t i = 0; i < std::min(results.size(), region.outputs.size()); ++i) {
    const std::string* name = value_name(region.outputs[i]);
    const auto input = name == nullptr ? same.end() : same.find(*name);
    if (input != same.end() && input->second < given.size()) results[i] = given[input->second];
  }
  context.results_are(results);
}

// wrap_with_autocast(device type, element type, whether it is on, whether it caches, graph, ..)
void autocast_region(NodeContext& context) {
  if (context.constant<bool>(2)) {
    throw Unsupported(
        "runs under torch.autocast: export without it; amp.dtype in the recipe does "
        "the same for the whole model");
  }
  context.results_are(context.run(only_region(context), context.operands()));
}

void add_branch(NodeContext& context, const Graph& branch, const std::vector<std::string>& inputs,
                const std::vector<std::string>& results) {
  const std::vector<std::string> outputs = context.run(branch, inputs);
  if (outputs.size() != results.size())
    throw Unsupported("has another number of results than its branches");
  for (std::size_t i = 0; i < results.size(); ++i) context.line(results[i] + " = " + outputs[i]);
  if (results.empty()) context.line("pass");
  context.close();
}

void condition(NodeContext& context) {
  const std::vector<const Graph*> branches = regions_of(context.node());
  if (branches.size() != 2) throw Unsupported("has not the two branches of a condition");
  const std::string question = context.input(std::size_t{0});
  const std::vector<std::string> inputs = context.operands();
  const std::vector<std::string> results = context.declare_results();
  context.open("if bool(" + question + "):");
  add_branch(context, *branches[0], inputs, results);
  context.open("else:");
  add_branch(context, *branches[1], inputs, results);
}

}  // namespace

std::span<const OperatorRule> region_rules() {
  static constexpr std::array kRules = std::to_array<OperatorRule>({
      {"higher_order.cond", condition},
      {"higher_order.wrap_with_autocast", autocast_region},
      {"higher_order.wrap_with_set_grad_enabled", gradient_region},
  });
  return kRules;
}

}  // namespace decent::pt2
