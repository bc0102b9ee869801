// Control flow: translates the graphs inside of If, Loop, Scan and SequenceMap.

#include <algorithm>

#include "decent/onnx/graph/loop_states.h"
#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

// What is known about a variable to which several values are assigned.
Value variable_of(const Value& like, const std::string& name, std::optional<std::int64_t> rank) {
  Value value;
  value.kind = like.kind;
  value.type = like.type;
  value.rank = rank;
  value.text = name;
  value.has_gradient = is_floating(like.type);
  return value;
}

std::vector<Value> assigned_branch(NodeContext& c, const std::string& head, const Graph& branch,
                                   const std::vector<std::string>& names) {
  c.open(head);
  std::vector<Value> values = c.translate_graph(branch, {});
  for (std::size_t i = 0; i < names.size(); ++i) c.assign(names[i], c.text_of(values[i]));
  c.close();
  return values;
}

void if_else(NodeContext& c) {
  const Graph& yes = c.graph_attribute("then_branch");
  const Graph& no = c.graph_attribute("else_branch");
  const std::size_t count = c.node().outputs.size();
  if (yes.outputs.size() != count || no.outputs.size() != count)
    throw Unsupported("has branches with other numbers of outputs than its own");
  if (const auto known = c.known_scalar(0)) {
    std::vector<Value> values = c.translate_graph(*known != 0 ? yes : no, {});
    for (std::size_t i = 0; i < count; ++i) c.set_value(i, std::move(values[i]));
    return;
  }
  std::vector<std::string> names;
  for (const std::string& output : c.node().outputs) names.push_back(c.fresh_name(output));
  const auto then_values = assigned_branch(c, "if " + c.bool_scalar(0) + ":", yes, names);
  const auto else_values = assigned_branch(c, "else:", no, names);
  for (std::size_t i = 0; i < count; ++i) {
    if (then_values[i].kind != else_values[i].kind || then_values[i].type != else_values[i].type)
      throw Unsupported("has branches with outputs of different types");
    const auto rank =
        then_values[i].rank == else_values[i].rank ? then_values[i].rank : std::nullopt;
    c.set_value(i, variable_of(then_values[i], names[i], rank));
  }
}

std::optional<std::int64_t> declared_rank(const ValueInfo& info) {
  if (!info.shape) return std::nullopt;
  return static_cast<std::int64_t>(info.shape->size());
}

// The value of each state inside the body: a variable that passes from one round to the next, or,
// if no round changes it, the value from before the loop, so that a weight stays a weight.
std::vector<Value> make_states(NodeContext& c, const Graph& body,
                               const std::vector<LoopState>& states) {
  std::vector<Value> values;
  for (const LoopState& state : states) {
    const Value& initial = c.input(state.input);
    if (state.is_unchanged) {
      values.push_back(initial);
      continue;
    }
    const ValueInfo& info = body.inputs.at(state.body_input);
    const std::string name = c.variable(info.name, c.text_of(initial));
    values.push_back(variable_of(initial, name, declared_rank(info)));
  }
  return values;
}

// Assigns all at once, because they may depend on each other.
void assign_states(NodeContext& c, const std::vector<LoopState>& states,
                   const std::vector<Value>& variables, const std::vector<Value>& given) {
  std::vector<std::string> names;
  Arguments next;
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].is_unchanged) continue;
    names.push_back(variables[i].text);
    next.add(c.text_of(given[states[i].body_output]));
  }
  if (!names.empty()) c.assign(names, next.text());
}

// Creates the lists to which every round adds an element.
std::vector<std::string> make_lists(NodeContext& c, const Graph& body, std::size_t first) {
  std::vector<std::string> lists;
  for (std::size_t i = first; i < body.outputs.size(); ++i)
    lists.push_back(c.variable(body.outputs[i].name + "_list", empty_list("Tensor")));
  return lists;
}

void append_to_lists(NodeContext& c, const std::vector<std::string>& lists,
                     const std::vector<Value>& values, std::size_t first) {
  for (std::size_t i = 0; i < lists.size(); ++i)
    c.line(method(lists[i], "append", c.text_of(values[first + i])).text());
}

bool is_true(const Tensor* tensor) {
  return tensor != nullptr && tensor->type == ElementType::boolean && tensor->count() == 1 &&
         as_integers(*tensor).front() != 0;
}

// Whether a loop's body always asks for another round, so that it is a `for` and not a `while`.
bool goes_on(const Graph& body) {
  std::string name = body.outputs.front().name;
  for (auto node = body.nodes.rbegin(); node != body.nodes.rend(); ++node) {
    if (node->outputs.empty() || node->outputs.front() != name) continue;
    if (node->op_type == "Constant") {
      const Attribute* value = node->find("value");
      return value != nullptr && is_true(std::get_if<Tensor>(&value->value));
    }
    if (node->op_type != "Identity" || node->inputs.empty()) return false;
    name = node->inputs.front();
  }
  for (const Tensor& tensor : body.initializers) {
    if (tensor.name == name) return is_true(&tensor);
  }
  return body.inputs.size() > 1 && body.inputs[1].name == name;  // the condition that it received
}

// What the head and the end of a Loop have in common.
struct Rounds {
  std::string index;
  std::string condition;  // the variable; empty if the body always goes on
};

// A body takes microseconds at least, so a loop with more rounds would seem to hang.
void check_trips(NodeContext& c) {
  constexpr std::int64_t kMaxTrips = 10'000'000;
  const auto trips = c.known_integers(0);
  if (trips && trips->size() == 1 && trips->front() > kMaxTrips)
    throw Unsupported("runs its body " + std::to_string(trips->front()) + " times; at most " +
                      std::to_string(kMaxTrips) + " are imported");
}

void open_range(NodeContext& c, const std::string& index, const Expression& count) {
  c.open("for " + index + " in " + call("range", count).text() + ":");
}

Rounds open_rounds(NodeContext& c, const Graph& body) {
  Rounds rounds{c.fresh_name("i"), ""};
  const bool starts = !c.has(1) || c.known_scalar(1).value_or(0) != 0;
  const std::string first = starts ? "True" : c.bool_scalar(1);
  if (c.has(0) && goes_on(body)) {
    check_trips(c);
    const Expression trips = c.int_scalar(0);
    open_range(c, rounds.index, starts ? trips : conditional(trips, first, 0));
    return rounds;
  }
  rounds.condition = c.variable("goes_on", first);
  Expression again = rounds.condition;
  if (c.has(0))
    again = binary(again, "and", binary(rounds.index, "<", c.variable("trips", c.int_scalar(0))));
  c.assign(rounds.index, 0);
  c.open("while " + again.text() + ":");
  return rounds;
}

std::vector<Value> body_inputs(const Rounds& rounds, const Graph& body,
                               const std::vector<Value>& states) {
  const auto rank = [&](std::size_t input) {
    return declared_rank(body.inputs.at(input)).value_or(0);
  };
  std::vector<Value> inputs;
  inputs.push_back(Value::of_integers({Integer::size(rounds.index)}, rank(0)));
  inputs.push_back(Value::of_integers({Integer::of(1)}, rank(1), ElementType::boolean));
  inputs.insert(inputs.end(), states.begin(), states.end());
  return inputs;
}

Expression truth_of(NodeContext& c, const Value& value) {
  if (value.integers && value.integers->size() == 1) return call("bool", value.integers->front());
  return call("bool", c.text_of(value));
}

std::optional<std::int64_t> stacked_rank(const Value& element) {
  return element.rank ? std::optional(*element.rank + 1) : std::nullopt;
}

void loop(NodeContext& c) {
  const Graph& body = c.graph_attribute("body");
  const std::size_t carried = c.inputs() < 2 ? 0 : c.inputs() - 2;
  if (body.inputs.size() != carried + 2 || body.outputs.size() < carried + 1)
    throw Unsupported("has a body with another number of inputs and outputs than it is given");
  const std::vector<LoopState> states = loop_states(c.node());
  const std::vector<Value> variables = make_states(c, body, states);
  const std::vector<std::string> lists = make_lists(c, body, carried + 1);
  const Rounds rounds = open_rounds(c, body);
  const std::vector<Value> values = c.translate_graph(body, body_inputs(rounds, body, variables));
  append_to_lists(c, lists, values, carried + 1);
  if (!rounds.condition.empty()) {
    c.assign(rounds.condition, truth_of(c, values.front()));
    c.assign(rounds.index, binary(rounds.index, "+", 1));
  }
  assign_states(c, states, variables, values);
  c.close();
  for (std::size_t i = 0; i < carried; ++i) c.set_value(i, variables[i]);
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const Value& element = values[carried + 1 + i];
    c.set(carried + i, call("torch.stack", lists[i]), element.type, stacked_rank(element));
  }
}

std::int64_t entry_or(const std::optional<std::vector<std::int64_t>>& values, std::size_t index,
                      std::int64_t otherwise) {
  return values && index < values->size() ? (*values)[index] : otherwise;
}

// One slice of every scan input, as a value inside the loop.
std::vector<Value> scan_elements(NodeContext& c, std::size_t first, std::size_t count,
                                 const std::string& index) {
  const auto axes = c.ints("scan_input_axes");
  const auto directions = c.ints("scan_input_directions");
  std::vector<Value> elements;
  for (std::size_t i = 0; i < count; ++i) {
    const Value& whole = c.input(first + i);
    const std::int64_t axis = axis_of(entry_or(axes, i, 0), whole.rank);
    const Expression x = c.text_of(whole);
    const Expression last = binary(method(x, "size", axis), "-", 1);
    const bool forward = entry_or(directions, i, 0) == 0;
    const Expression place = forward ? Expression(index) : binary(last, "-", index);
    const std::string name = c.variable("element", method(x, "select", axis, place));
    const auto rank = whole.rank ? std::optional(*whole.rank - 1) : std::nullopt;
    elements.push_back(variable_of(whole, name, rank));
  }
  return elements;
}

void set_scan_outputs(NodeContext& c, const std::vector<std::string>& lists,
                      const std::vector<Value>& values, std::size_t states) {
  const auto axes = c.ints("scan_output_axes");
  const auto directions = c.ints("scan_output_directions");
  for (std::size_t i = 0; i < lists.size(); ++i) {
    const Value& element = values[states + i];
    const std::int64_t axis = axis_of(entry_or(axes, i, 0), stacked_rank(element));
    Expression stacked = call("torch.stack", lists[i], axis);
    if (entry_or(directions, i, 0) != 0) stacked = method(stacked, "flip", list(axis));
    c.set(states + i, stacked, element.type, stacked_rank(element));
  }
}

void scan(NodeContext& c) {
  const Graph& body = c.graph_attribute("body");
  const auto scanned =
      static_cast<std::size_t>(std::max<std::int64_t>(c.int_or("num_scan_inputs", 0), 0));
  if (scanned == 0 || scanned > c.inputs() || body.inputs.size() != c.inputs() ||
      body.outputs.size() < c.inputs() - scanned)
    throw Unsupported("has a body with another number of inputs and outputs than it is given");
  const std::size_t carried = c.inputs() - scanned;
  const std::vector<LoopState> states = loop_states(c.node());
  const std::vector<Value> variables = make_states(c, body, states);
  const std::vector<std::string> lists = make_lists(c, body, carried);
  const std::int64_t axis = axis_of(entry_or(c.ints("scan_input_axes"), 0, 0), c.rank(carried));
  const std::string index = c.fresh_name("i");
  open_range(c, index, size_of_dimension(c, carried, axis));
  std::vector<Value> inputs = variables;
  for (Value& element : scan_elements(c, carried, scanned, index))
    inputs.push_back(std::move(element));
  const std::vector<Value> values = c.translate_graph(body, std::move(inputs));
  append_to_lists(c, lists, values, carried);
  assign_states(c, states, variables, values);
  c.close();
  for (std::size_t i = 0; i < carried; ++i) c.set_value(i, variables[i]);
  set_scan_outputs(c, lists, values, carried);
}

void sequence_map(NodeContext& c) {
  const Graph& body = c.graph_attribute("body");
  if (body.inputs.size() != c.inputs())
    throw Unsupported("has a body with another number of inputs than it is given");
  const std::vector<std::string> lists = make_lists(c, body, 0);
  const std::string index = c.fresh_name("i");
  open_range(c, index, call("len", c.tensor(0)));
  std::vector<Value> inputs;
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    const Value& each = c.input(i);
    if (each.kind == Value::Kind::tensor) {
      inputs.push_back(each);
      continue;
    }
    const std::string name = c.variable("element", subscript(c.text_of(each), index));
    inputs.push_back(variable_of(each, name, std::nullopt));
    inputs.back().kind = Value::Kind::tensor;
  }
  const std::vector<Value> values = c.translate_graph(body, std::move(inputs));
  append_to_lists(c, lists, values, 0);
  c.close();
  for (std::size_t i = 0; i < lists.size(); ++i) c.set_sequence(i, lists[i], values[i].type);
}

constexpr Operator kControlOperators[] = {
    {"If", 1, if_else},
    {"Loop", 1, loop},
    {"Scan", 9, scan},
    {"SequenceMap", 17, sequence_map},
};

}  // namespace

std::span<const Operator> control_operators() { return kControlOperators; }

}  // namespace decent::onnx
