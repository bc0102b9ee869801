#include "decent/pt2/translate/node_context.h"

#include <algorithm>

#include "decent/core/text.h"

namespace decent::pt2 {
namespace {

/// The scope of a node, and its method.
class NamesAtNode final : public NamesInSource {
 public:
  NamesAtNode(const ValueScope& scope, MethodWriter& method) : scope_(scope), method_(method) {}
  std::string value(const std::string& name) const override { return scope_.text(name); }
  std::string device() const override { return method_.device(); }

 private:
  const ValueScope& scope_;
  MethodWriter& method_;
};

bool is_bool(const Argument& value) {
  return std::holds_alternative<bool>(value) || std::holds_alternative<SymBoolArgument>(value);
}

// An argument that depends on the mode. `mode` is an expression that is true in training.
std::string switched(const std::string& text, ModeSwitch::Kind kind, const std::string& mode) {
  if (kind == ModeSwitch::Kind::flag) return mode;
  return text + " if " + mode + " else " + (kind == ModeSwitch::Kind::divisor ? "1.0" : "0.0");
}

}  // namespace

// Adapts the argument to TorchScript, which distinguishes an int from a float although a file has 0
// for Python's 0.0, and would turn a bool given for a tensor, as in mask * True, into an int.
std::string NodeContext::argument(const NamedArgument& input) const {
  const NamesAtNode names(scope_, method_);
  const std::string text = argument_text(input.value, names);
  const auto* whole = std::get_if<std::int64_t>(&input.value);
  const bool is_number = whole != nullptr || is_bool(input.value);
  if (!is_number || !target_.is_aten()) return text;
  const OperatorSchema* known = schema();
  const SchemaArgument* declared = known == nullptr ? nullptr : known->find(input.name);
  if (declared == nullptr) return text;
  if (whole != nullptr)
    return declared->is_float ? argument_text(static_cast<double>(*whole), names) : text;
  return declared->is_tensor ? "torch.scalar_tensor(" + text + ", dtype=torch.bool)" : text;
}

std::string NodeContext::input(std::size_t place) const {
  if (place < inputs()) return argument(node_.inputs[place]);
  throw Unsupported("lacks its input " + std::to_string(place));
}

std::string NodeContext::input(std::string_view name) const {
  for (const NamedArgument& each : node_.inputs) {
    if (each.name == name) return argument(each);
  }
  throw Unsupported("lacks its input '" + std::string(name) + "'");
}

std::string NodeContext::training(const std::string& module) const {
  return attribute_expression(module.empty() ? "" : printable_path(module)) + ".training";
}

// Only names that PyTorch declares become part of the source, because a file may contain any text.
const std::string& NodeContext::keyword(const std::string& name) const {
  const OperatorSchema* known = schema();
  const SchemaArgument* declared = known == nullptr ? nullptr : known->find(name);
  if (declared != nullptr) return declared->name;
  throw Unsupported("has an input " + in_quotes(name) + ", which its operator does not take");
}

// Whether a bool would be lost: TorchScript turns a bool into an int where a number is expected,
// and torch.where(x, True, False) into a tensor of ints, for which ~ means something else.
bool NodeContext::loses_bool() const {
  const OperatorSchema* known = schema();
  if (known == nullptr || node_.outputs.size() != 1) return false;
  const auto* result = std::get_if<TensorArgument>(&node_.outputs.front());
  const auto meta =
      result == nullptr ? graph_.tensor_values.end() : graph_.tensor_values.find(result->name);
  if (meta == graph_.tensor_values.end() || meta->second.dtype != ScalarType::boolean) return false;
  return std::any_of(node_.inputs.begin(), node_.inputs.end(), [&](const NamedArgument& input) {
    const SchemaArgument* declared = is_bool(input.value) ? known->find(input.name) : nullptr;
    return declared != nullptr && declared->is_scalar;
  });
}

// The results of an operator besides its writes are needed in evaluation, too, so there it writes
// into a copy.
std::string NodeContext::copied_in_evaluation(std::string text, std::size_t place) const {
  const NodeWrites* writes = training_writes();
  if (writes == nullptr || writes->gives_written) return text;
  for (const BufferWrite& each : writes->tensors) {
    if (each.input != place) continue;
    return text + " if " + training(module_of_buffer(each.buffer)) + " else " + text + ".clone()";
  }
  return text;
}

std::string NodeContext::call(const std::string& function) const {
  const ModeSwitch* found = mode_switch();
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < node_.inputs.size(); ++i) {
    const NamedArgument& each = node_.inputs[i];
    std::string text = copied_in_evaluation(argument(each), i);
    if (found != nullptr && found->argument == each.name) {
      text = switched(text, found->kind, training(found->module));
    }
    const bool by_name = each.kind == NamedArgument::Kind::keyword;
    arguments.push_back(by_name ? keyword(each.name) + "=" + text : text);
  }
  return function + "(" + join(arguments) + ")" + (loses_bool() ? ".to(torch.bool)" : "");
}

std::vector<std::string> NodeContext::declare_results() {
  std::vector<std::string> names;
  for (const Argument& result : results_of(node_)) {
    const std::string* name = value_name(result);
    names.push_back(method_.fresh_name(name == nullptr ? node_.name : *name));
    if (name != nullptr) scope_.define(*name, names.back());
  }
  return names;
}

void NodeContext::assign(const std::string& expression) {
  const bool is_list = node_.outputs.size() == 1 && value_name(node_.outputs.front()) == nullptr;
  const std::vector<std::string> names = declare_results();
  const bool has_lists =
      std::any_of(node_.outputs.begin(), node_.outputs.end(),
                  [](const Argument& each) { return elements_of(each).size() != 1; });
  if (names.empty()) return line(expression);
  if (names.size() == 1) return line(names.front() + " = " + expression + (is_list ? "[0]" : ""));
  if (node_.outputs.size() > 1 && has_lists)
    throw Unsupported("gives a list beside other results, which has no translation yet");
  line(join(names) + " = " + expression);
}

void NodeContext::results_are(const std::vector<std::string>& texts) {
  const std::vector<Argument> results = results_of(node_);
  if (results.size() != texts.size())
    throw Unsupported("has another number of results than it says");
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (const std::string* name = value_name(results[i])) scope_.define(*name, texts[i]);
  }
}

std::vector<std::string> NodeContext::operands() const {
  std::vector<std::string> texts;
  const NamesAtNode names(scope_, method_);
  for (const Argument& each : operands_of(node_)) texts.push_back(argument_text(each, names));
  return texts;
}

std::vector<std::string> NodeContext::run(const Graph& region,
                                          const std::vector<std::string>& inputs) {
  if (region.inputs.size() != inputs.size())
    throw Unsupported("gives its graph another number of inputs than that takes");
  ValueScope inside;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (const std::string* name = value_name(region.inputs[i])) inside.define(*name, inputs[i]);
  }
  method_.add_nodes(region, inside);
  std::vector<std::string> outputs;
  const NamesAtNode names(inside, method_);
  for (const Argument& output : region.outputs) {
    for (const Argument& each : elements_of(output)) outputs.push_back(argument_text(each, names));
  }
  return outputs;
}

}  // namespace decent::pt2
