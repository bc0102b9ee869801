#include "decent/onnx/translate/node_context.h"

#include <algorithm>

#include "decent/core/text.h"
#include "decent/onnx/format/elements.h"
#include "decent/onnx/translate/graph_translator.h"

namespace decent::onnx {
namespace {

template <typename T>
const T* attribute_value(const Node& node, std::string_view name) {
  const Attribute* attribute = node.find(name);
  if (attribute == nullptr) return nullptr;
  const T* value = std::get_if<T>(&attribute->value);
  if (value == nullptr) {
    throw Unsupported("has an attribute '" + std::string(name) + "' of the wrong type");
  }
  return value;
}

}  // namespace

NodeContext::NodeContext(GraphTranslator& graph, const Node& node)
    : graph_(graph), module_(graph.module()), node_(node) {}

std::int64_t NodeContext::opset() const { return node_.opset != 0 ? node_.opset : graph_.opset(); }

bool NodeContext::has(std::size_t input) const {
  return input < node_.inputs.size() && !node_.inputs[input].empty();
}

const Value& NodeContext::input(std::size_t input) const {
  if (!has(input)) throw Unsupported("lacks input " + std::to_string(input));
  const Value* value = module_.find(node_.inputs[input]);
  if (value == nullptr) throw Unsupported("uses the unknown value '" + node_.inputs[input] + "'");
  if (value->type == ElementType::string) throw Unsupported("reads strings, which PyTorch lacks");
  return *value;
}

std::string NodeContext::tensor(std::size_t input) {
  const Value& value = this->input(input);
  if (value.constant && value.text.empty())
    return module_.constant_text(value.constant, node_.inputs[input]);
  return module_.text_of(value);
}

std::string NodeContext::text_of(const Value& value) { return module_.text_of(value); }

std::optional<std::vector<Integer>> NodeContext::integers(std::size_t input) const {
  return this->input(input).integers;
}

std::optional<std::vector<std::int64_t>> NodeContext::known_integers(std::size_t input) const {
  const Value& value = this->input(input);
  if (value.integers) {
    std::vector<std::int64_t> known;
    for (const Integer& each : *value.integers) {
      if (!each.known) return std::nullopt;
      known.push_back(*each.known);
    }
    return known;
  }
  const bool whole = is_integer(value.type) || value.type == ElementType::boolean;
  if (!value.constant || !whole) return std::nullopt;
  return as_integers(*value.constant);
}

std::string NodeContext::int_list(std::size_t input) {
  const Value& value = this->input(input);
  if (value.integers) return list(*value.integers).text();
  if (!is_integer(value.type))
    throw Unsupported("wants integers as input " + std::to_string(input));
  const std::string name = fresh_name(node_.inputs[input] + "_list");
  const Expression x = tensor(input);
  const Expression wide = value.type == ElementType::int64 ? x : method(x, "to", "torch.int64");
  assign(name + ": List[int]", method(wide, "tolist"));
  return name;
}

std::string NodeContext::int_scalar(std::size_t input) {
  const Value& value = this->input(input);
  if (value.integers && value.integers->size() == 1) return value.integers->front().text();
  return call("int", tensor(input)).text();
}

std::string NodeContext::float_scalar(std::size_t input) {
  if (const auto known = known_scalar(input)) return literal(*known);
  return call("float", tensor(input)).text();
}

std::string NodeContext::bool_scalar(std::size_t input) {
  if (const auto known = known_scalar(input)) return *known != 0 ? "True" : "False";
  const auto& integers = this->input(input).integers;
  if (integers && integers->size() == 1) return call("bool", integers->front()).text();
  return call("bool", tensor(input)).text();
}

std::optional<double> NodeContext::known_scalar(std::size_t input) const {
  const Value& value = this->input(input);
  if (value.constant && value.constant->count() == 1) return as_doubles(*value.constant).front();
  if (value.integers && value.integers->size() == 1 && value.integers->front().known)
    return static_cast<double>(*value.integers->front().known);
  return std::nullopt;
}

std::int64_t NodeContext::int_or(std::string_view name, std::int64_t otherwise) const {
  const auto* value = attribute_value<std::int64_t>(node_, name);
  return value != nullptr ? *value : otherwise;
}

double NodeContext::float_or(std::string_view name, double otherwise) const {
  const auto* value = attribute_value<float>(node_, name);
  return value != nullptr ? as_written(*value) : otherwise;
}

std::string NodeContext::string_or(std::string_view name, const std::string& otherwise) const {
  const auto* value = attribute_value<std::string>(node_, name);
  return value != nullptr ? *value : otherwise;
}

std::optional<std::vector<std::int64_t>> NodeContext::ints(std::string_view name) const {
  const auto* value = attribute_value<std::vector<std::int64_t>>(node_, name);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

std::optional<std::vector<float>> NodeContext::floats(std::string_view name) const {
  const auto* value = attribute_value<std::vector<float>>(node_, name);
  return value != nullptr ? std::optional(*value) : std::nullopt;
}

const Tensor* NodeContext::tensor_attribute(std::string_view name) const {
  return attribute_value<Tensor>(node_, name);
}

const Graph& NodeContext::graph_attribute(std::string_view name) const {
  const auto* value = attribute_value<std::shared_ptr<Graph>>(node_, name);
  if (value == nullptr) throw Unsupported("lacks its graph '" + std::string(name) + "'");
  return **value;
}

ElementType NodeContext::type_attribute(std::string_view name, ElementType otherwise) const {
  const std::int64_t number = int_or(name, static_cast<std::int64_t>(otherwise));
  const ElementType type = element_type(number);
  if (type == ElementType::undefined)
    throw Unsupported("has '" + std::string(name) + "' = " + std::to_string(number) +
                      ", an element type that PyTorch lacks or trains nothing in");
  return module_.as_computed(type);
}

ElementType NodeContext::as_computed(ElementType type) const { return module_.as_computed(type); }

std::optional<std::vector<std::int64_t>> NodeContext::axes(std::string_view attribute,
                                                           std::size_t input) const {
  if (const auto given = ints(attribute)) return given;
  if (!has(input)) return std::nullopt;
  const auto known = known_integers(input);
  if (!known) throw Unsupported("has axes that are only known when the model runs");
  return known;
}

void NodeContext::line(const std::string& text) { module_.method().add(text); }

std::string NodeContext::fresh_name(std::string_view hint) { return module_.fresh_name(hint); }

void NodeContext::assign(const std::string& name, const Expression& expression) {
  line(name + " = " + expression.text());
}

void NodeContext::assign(std::span<const std::string> names, const Expression& expression) {
  assign(join(names), expression);
}

std::string NodeContext::variable(std::string_view hint, const Expression& expression) {
  const std::string name = fresh_name(hint);
  assign(name, expression);
  return name;
}

void NodeContext::open(const std::string& text) { module_.method().open(text); }

void NodeContext::close() { module_.method().close(); }

std::string NodeContext::device() { return module_.method().device(); }

std::string NodeContext::helper(std::string_view name) { return module_.method().helper(name); }

std::string NodeContext::constant(std::shared_ptr<const Tensor> tensor, std::string_view hint) {
  return module_.constant_text(module_.as_computed(std::move(tensor)), hint);
}

std::string NodeContext::dtype(ElementType type) const {
  const auto name = torch_dtype(type);
  if (!name)
    throw Unsupported("is about " + std::string(name_of(type)) + " elements, which PyTorch lacks");
  return *name;
}

void NodeContext::note(std::string_view text) {
  graph_.note(describe(node_) + " " + std::string(text));
}

bool NodeContext::wants(std::size_t output) const {
  return output < node_.outputs.size() && !node_.outputs[output].empty();
}

bool NodeContext::is_read(std::size_t output) const {
  return wants(output) && module_.is_read(node_.outputs[output]);
}

void NodeContext::set(std::size_t output, const Expression& expression, ElementType type,
                      std::optional<std::int64_t> rank) {
  if (wants(output)) assign(declare(output, type, rank), expression);
}

std::string NodeContext::declare(std::size_t output, ElementType type,
                                 std::optional<std::int64_t> rank) {
  if (!wants(output)) return fresh_name("unused");
  Value value;
  value.type = module_.as_computed(type);
  value.rank = rank;
  value.text = fresh_name(node_.outputs[output]);
  const std::string name = value.text;
  module_.define(node_.outputs[output], std::move(value));
  return name;
}

void NodeContext::set_integers(std::size_t output, std::vector<Integer> integers, std::int64_t rank,
                               ElementType type) {
  if (!wants(output)) return;
  // Sums of sums of sizes would double the text with every node.
  constexpr std::size_t kMaxExpressionBytes = 60;
  for (Integer& each : integers) {
    if (each.known || each.expression.size() <= kMaxExpressionBytes) continue;
    each.expression = variable(node_.outputs[output] + "_size", each.expression);
  }
  set_value(output, Value::of_integers(std::move(integers), rank, type));
}

void NodeContext::set_dims(std::size_t output, std::vector<std::int64_t> dims) {
  if (!wants(output)) return;
  Value value = *module_.find(node_.outputs[output]);
  value.rank = static_cast<std::int64_t>(dims.size());
  value.dims = std::move(dims);
  set_value(output, std::move(value));
}

void NodeContext::set_constant(std::size_t output, std::shared_ptr<const Tensor> tensor) {
  set_value(output, Value::of_constant(module_.as_computed(std::move(tensor))));
}

void NodeContext::set_sequence(std::size_t output, const Expression& expression, ElementType type,
                               std::optional<std::int64_t> rank) {
  if (!wants(output)) return;
  Value value;
  value.kind = Value::Kind::sequence;
  value.type = module_.as_computed(type);
  value.rank = rank;
  value.text = fresh_name(node_.outputs[output]);
  assign(value.text, expression);
  module_.define(node_.outputs[output], std::move(value));
}

void NodeContext::set_value(std::size_t output, Value value) {
  if (wants(output)) module_.define(node_.outputs[output], std::move(value));
}

std::vector<Value> NodeContext::translate_graph(const Graph& graph, std::vector<Value> inputs) {
  return graph_.translate_graph(graph, std::move(inputs));
}

}  // namespace decent::onnx
