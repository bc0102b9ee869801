#include "decent/pt2/archive/parse.h"

#include <utility>

#include "decent/core/stored_tensor.h"
#include "decent/core/text.h"

namespace decent::pt2 {
namespace {

std::int64_t parse_number(Json json, std::int64_t*) { return json.integer(); }
double parse_number(Json json, double*) { return json.real(); }
bool parse_number(Json json, bool*) { return json.boolean(); }

template <typename Number>
Number number(Json json) {
  return parse_number(json, static_cast<Number*>(nullptr));
}

// {"as_int": 3} or {"as_expr": {"expr_str": .., "hint": {"as_int": 2}}}.
template <typename Number>
SymValue<Number> parse_sym_value(Json json) {
  const Json value = json.alternative();
  if (value.key() != "as_expr")
    return {.value = number<Number>(value), .expression = {}, .hint = {}};
  SymValue<Number> result{.value = {}, .expression = value.at("expr_str").text(), .hint = {}};
  if (const auto hint = value.find("hint")) result.hint = number<Number>(hint->alternative());
  return result;
}

template <typename Parse>
auto parse_by_name(std::optional<Json> json, Parse parse) {
  ByName<decltype(parse(*json))> values;
  if (!json) return values;
  for (const Json value : json->object()) {
    if (!values.emplace(value.key(), parse(value)).second) value.fail("is there twice");
  }
  return values;
}

NamedArgument parse_named_argument(Json json) {
  NamedArgument argument{json.at("name").text(), parse_argument(json.at("arg")),
                         NamedArgument::Kind::unknown};
  const auto kind = json.find("kind");
  if (!kind) return argument;
  if (kind->integer() < 0 || kind->integer() > 2)
    kind->fail("is no kind of argument that is known");
  argument.kind = static_cast<NamedArgument::Kind>(kind->integer());
  return argument;
}

Node parse_node(Json json) {
  Node node;
  node.target = json.at("target").text();
  node.inputs = parse_list(json.at("inputs"), parse_named_argument);
  node.outputs = parse_list(json.at("outputs"), parse_argument);
  node.metadata = parse_by_name(json.find("metadata"), [](Json text) { return text.text(); });
  if (const auto name = json.find("name")) node.name = name->text();
  if (const auto is_single = json.find("is_hop_single_tensor_return")) {
    node.is_hop_single_tensor_return = is_single->boolean();
  }
  return node;
}

}  // namespace

TensorMeta parse_tensor_meta(Json json) {
  TensorMeta meta;
  meta.dtype = parse_scalar_type(json.at("dtype"));
  meta.sizes = parse_list(json.at("sizes"), parse_sym_value<std::int64_t>);
  if (meta.sizes.size() > kMaxTensorDimensions)
    json.fail("has more than " + std::to_string(kMaxTensorDimensions) + " dimensions");
  meta.strides = parse_list(json.at("strides"), parse_sym_value<std::int64_t>);
  meta.storage_offset = parse_sym_value<std::int64_t>(json.at("storage_offset"));
  meta.device = parse_device(json.at("device"));
  meta.layout = parse_layout(json.at("layout"));
  meta.requires_grad = json.at("requires_grad").boolean();
  return meta;
}

Graph parse_graph(Json json) {
  Graph graph;
  graph.inputs = parse_list(json.at("inputs"), parse_argument);
  graph.outputs = parse_list(json.at("outputs"), parse_argument);
  graph.nodes = parse_list(json.at("nodes"), parse_node);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) graph.nodes[i].place = i;
  graph.tensor_values = parse_by_name(json.at("tensor_values"), parse_tensor_meta);
  graph.sym_int_values = parse_by_name(json.find("sym_int_values"), parse_sym_value<std::int64_t>);
  graph.sym_float_values = parse_by_name(json.find("sym_float_values"), parse_sym_value<double>);
  graph.sym_bool_values = parse_by_name(json.find("sym_bool_values"), parse_sym_value<bool>);
  graph.custom_obj_values = parse_by_name(json.find("custom_obj_values"), parse_custom_obj);
  if (const auto is_single = json.find("is_single_tensor_return")) {
    graph.is_single_tensor_return = is_single->boolean();
  }
  return graph;
}

}  // namespace decent::pt2
