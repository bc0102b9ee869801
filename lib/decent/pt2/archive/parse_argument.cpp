#include "decent/pt2/archive/parse.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "decent/core/text.h"

namespace decent::pt2 {
namespace {

bool parse_boolean(Json json) { return json.boolean(); }
double parse_real(Json json) { return json.real(); }

template <typename Enumeration>
Enumeration enumerator(Json json, Enumeration last, const char* what) {
  const std::int64_t number = json.integer();
  if (number < 0 || number > static_cast<std::int64_t>(last)) {
    json.fail("is " + std::to_string(number) + ", which is no " + what + " that is known");
  }
  return static_cast<Enumeration>(number);
}

MemoryFormat parse_memory_format(Json json) {
  return enumerator(json, MemoryFormat::preserve, "memory format");
}

// {"as_name": "s77"} or, in a list of both, {"as_int": 3}.
template <typename Number>
SymArgument<Number> parse_sym(Json json, Number (*parse)(Json), std::string_view constant) {
  const Json value = json.alternative();
  if (value.key() == "as_name") return {value.text()};
  if (value.key() != constant) {
    json.fail("is " + in_quotes(value.key()) + ", not 'as_name' or " + in_quotes(constant));
  }
  return {parse(value)};
}

std::int64_t parse_integer(Json json) { return json.integer(); }

SymIntArgument parse_sym_int(Json json) {
  return parse_sym<std::int64_t>(json, parse_integer, "as_int");
}
SymFloatArgument parse_sym_float(Json json) {
  return parse_sym<double>(json, parse_real, "as_float");
}
SymBoolArgument parse_sym_bool(Json json) {
  return parse_sym<bool>(json, parse_boolean, "as_bool");
}

OptionalTensor parse_optional_tensor(Json json) {
  const Json value = json.alternative();
  if (value.key() == "as_none") return std::nullopt;
  if (value.key() != "as_tensor") {
    json.fail("is " + in_quotes(value.key()) + ", not 'as_tensor' or 'as_none'");
  }
  return parse_tensor_argument(value);
}

Argument optional_tensor(Json json) {
  const OptionalTensor tensor = parse_optional_tensor(json);
  return tensor ? Argument(*tensor) : Argument(None{});
}

Argument graph(Json json) {
  return GraphArgument{json.at("name").text(),
                       std::make_shared<const Graph>(parse_graph(json.at("graph")))};
}

Argument dictionary(Json json) {
  ArgumentDict dict;
  for (const Json entry : json.object())
    dict.entries.push_back({entry.key(), parse_argument(entry)});
  return dict;
}

struct ArgumentKind {
  std::string_view name;
  Argument (*parse)(Json json);
};

// In the order of class Argument in torch/_export/serde/schema.py.
constexpr auto kArgumentKinds = std::to_array<ArgumentKind>({
    {"as_none", [](Json) -> Argument { return None{}; }},
    {"as_tensor", [](Json json) -> Argument { return parse_tensor_argument(json); }},
    {"as_tensors", [](Json json) -> Argument { return parse_list(json, parse_tensor_argument); }},
    {"as_int", [](Json json) -> Argument { return json.integer(); }},
    {"as_ints", [](Json json) -> Argument { return parse_integers(json); }},
    {"as_float", [](Json json) -> Argument { return json.real(); }},
    {"as_floats", [](Json json) -> Argument { return parse_list(json, parse_real); }},
    {"as_string", [](Json json) -> Argument { return json.text(); }},
    {"as_strings", [](Json json) -> Argument { return parse_texts(json); }},
    {"as_sym_int", [](Json json) -> Argument { return parse_sym_int(json); }},
    {"as_sym_ints", [](Json json) -> Argument { return parse_list(json, parse_sym_int); }},
    {"as_scalar_type", [](Json json) -> Argument { return parse_scalar_type(json); }},
    {"as_memory_format", [](Json json) -> Argument { return parse_memory_format(json); }},
    {"as_layout", [](Json json) -> Argument { return parse_layout(json); }},
    {"as_device", [](Json json) -> Argument { return parse_device(json); }},
    {"as_bool", [](Json json) -> Argument { return json.boolean(); }},
    {"as_bools", [](Json json) -> Argument { return parse_list(json, parse_boolean); }},
    {"as_sym_bool", [](Json json) -> Argument { return parse_sym_bool(json); }},
    {"as_sym_bools", [](Json json) -> Argument { return parse_list(json, parse_sym_bool); }},
    {"as_graph", graph},
    {"as_optional_tensors",
     [](Json json) -> Argument { return parse_list(json, parse_optional_tensor); }},
    {"as_custom_obj", [](Json json) -> Argument { return parse_custom_obj(json); }},
    {"as_operator", [](Json json) -> Argument { return OperatorArgument{json.text()}; }},
    {"as_sym_float", [](Json json) -> Argument { return parse_sym_float(json); }},
    {"as_sym_floats", [](Json json) -> Argument { return parse_list(json, parse_sym_float); }},
    {"as_optional_tensor", optional_tensor},
    {"as_complex",
     [](Json json) -> Argument {
       return ComplexValue{json.at("real").real(), json.at("imag").real()};
     }},
    {"as_nested_tensors",
     [](Json json) -> Argument {
       return parse_list(json, [](Json item) { return parse_list(item, parse_tensor_argument); });
     }},
    {"as_int_lists", [](Json json) -> Argument { return parse_list(json, parse_integers); }},
    {"as_string_to_argument", dictionary},
    {"as_float_lists",
     [](Json json) -> Argument {
       return parse_list(json, [](Json item) { return parse_list(item, parse_real); });
     }},
});

}  // namespace

Argument parse_argument(Json json) {
  const Json value = json.alternative();
  const auto kind = std::ranges::find(kArgumentKinds, value.key(), &ArgumentKind::name);
  if (kind == kArgumentKinds.end()) {
    json.fail("is an argument of a kind that is not known, " + in_quotes(value.key()));
  }
  return kind->parse(value);
}

TensorArgument parse_tensor_argument(Json json) { return {json.at("name").text()}; }

CustomObjArgument parse_custom_obj(Json json) {
  return {json.at("name").text(), json.at("class_fqn").text()};
}

ScalarType parse_scalar_type(Json json) {
  if (const auto type = find_scalar_type(json.integer())) return *type;
  json.fail("is " + std::to_string(json.integer()) + ", which is no element type that is known");
}

Layout parse_layout(Json json) { return enumerator(json, Layout::strided, "layout"); }

Device parse_device(Json json) {
  Device device{json.at("type").text(), std::nullopt};
  if (const auto index = json.find("index")) device.index = index->integer();
  return device;
}

std::vector<std::string> parse_texts(Json json) {
  return parse_list(json, [](Json item) { return item.text(); });
}

std::vector<std::int64_t> parse_integers(Json json) { return parse_list(json, parse_integer); }

}  // namespace decent::pt2
