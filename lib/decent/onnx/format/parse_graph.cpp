// GraphProto and FunctionProto.

#include <unordered_set>
#include <utility>

#include "decent/core/text.h"
#include "decent/onnx/format/parse.h"

namespace decent::onnx {
namespace {

constexpr std::uint64_t kValueNameCost =
    sizeof(std::string) + 64;  // and a place in the checks' sets

void reserve_graph(const Message& message, Graph& graph) {
  const FieldCounts counts = count_fields(message);
  Input& input = message.input();
  input.count_nodes(static_cast<std::int64_t>(counts[1]));
  input.charge(counts[1] * sizeof(Node) + counts[5] * sizeof(Tensor) +
               (counts[11] + counts[12] + counts[13]) * sizeof(ValueInfo));
  graph.nodes.reserve(counts[1]);
  graph.initializers.reserve(counts[5]);
  graph.inputs.reserve(counts[11]);
  graph.outputs.reserve(counts[12]);
  graph.value_infos.reserve(counts[13]);
}

Tensor parse_initializer(const Message& message, const Surroundings& around) {
  Tensor tensor = parse_tensor(message, around, "an initializer");
  if (tensor.name.empty()) {
    message.input().fail("an initializer (byte " + std::to_string(message.content().begin) +
                         ") has no name");
  }
  return tensor;
}

void parse_graph_field(const Message& message, Fields& fields, const Field& field,
                       const Surroundings& around, Graph& graph) {
  switch (field.number) {
    case 1:
      graph.nodes.push_back(parse_node(message.open(field, "NodeProto"), field, around));
      break;
    case 2:
      fields.once();
      graph.name = message.text(field);
      break;
    case 5:
      graph.initializers.push_back(parse_initializer(message.open(field, "TensorProto"), around));
      break;
    case 11:
      graph.inputs.push_back(parse_value_info(message.open(field, "ValueInfoProto")));
      break;
    case 12:
      graph.outputs.push_back(parse_value_info(message.open(field, "ValueInfoProto")));
      break;
    case 13:
      graph.value_infos.push_back(parse_value_info(message.open(field, "ValueInfoProto")));
      break;
    case 15:
      message.input().fail("graph " + in_quotes(graph.name) +
                           " has a sparse_initializer, which is not read; write it as a dense one");
    case 16:
      parse_entry(message.open(field, "StringStringEntryProto"), graph.metadata);
      break;
    default:
      break;
  }
}

// Before IR version 4 every initializer had to be an input as well.
void drop_inputs_with_initializers(Input& input, Graph& graph) {
  input.charge(graph.initializers.size() * 2 * sizeof(std::string));
  std::unordered_set<std::string_view> given;
  for (const Tensor& initializer : graph.initializers) given.insert(initializer.name);
  std::erase_if(graph.inputs, [&](const ValueInfo& info) { return given.contains(info.name); });
}

void parse_function_field(const Message& message, Fields& fields, const Field& field,
                          Function& function) {
  switch (field.number) {
    case 1:
      fields.once();
      function.name = message.text(field);
      break;
    case 4:
      function.inputs.push_back(message.text(field));
      break;
    case 5:
      function.outputs.push_back(message.text(field));
      break;
    case 6:
      function.attributes.push_back(message.text(field));
      break;
    case 9:
      parse_opset(message.open(field, "OperatorSetIdProto"), function.opsets);
      break;
    case 10:
      fields.once();
      function.domain = canonical_domain(message.text(field));
      break;
    case 13:
      fields.once();
      function.overload = message.text(field);
      break;
    default:
      break;
  }
}

void reserve_function(const Message& message, Function& function) {
  const FieldCounts counts = count_fields(message);
  Input& input = message.input();
  input.count_nodes(static_cast<std::int64_t>(counts[7]));
  input.charge(counts[7] * sizeof(Node) + counts[11] * sizeof(Attribute) +
               (counts[4] + counts[5] + counts[6]) * kValueNameCost);
  function.inputs.reserve(counts[4]);
  function.outputs.reserve(counts[5]);
  function.attributes.reserve(counts[6]);
  function.nodes.reserve(counts[7]);
  function.default_attributes.reserve(counts[11]);
}

}  // namespace

Graph parse_graph(const Message& message, const Field& field, const Surroundings& around) {
  Graph graph;
  graph.field = field.range;
  reserve_graph(message, graph);
  for (Fields fields(message); const Field* each = fields.next();) {
    parse_graph_field(message, fields, *each, around, graph);
  }
  drop_inputs_with_initializers(message.input(), graph);
  return graph;
}

Function parse_function(const Message& message, const Surroundings& around) {
  Function function;
  reserve_function(message, function);
  for (Fields fields(message); const Field* field = fields.next();) {
    parse_function_field(message, fields, *field, function);
  }
  if (function.name.empty()) {
    message.input().fail("a function (byte " + std::to_string(message.content().begin) +
                         ") has no name");
  }
  const Surroundings inside{.external = around.external, .in_function = true};
  const std::string name = "function " + in_quotes(function.name);
  for (Fields fields(message); const Field* field = fields.next();) {
    if (field->number == 7) {
      function.nodes.push_back(parse_node(message.open(*field, "NodeProto"), *field, inside));
    } else if (field->number == 11) {
      function.default_attributes.push_back(
          parse_attribute(message.open(*field, "AttributeProto"), *field, around, name));
    }
  }
  return function;
}

}  // namespace decent::onnx
