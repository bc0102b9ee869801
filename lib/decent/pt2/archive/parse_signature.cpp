#include "decent/pt2/archive/parse.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "decent/core/text.h"

namespace decent::pt2 {
namespace {

std::string arg_name(Json json) { return json.at("arg").at("name").text(); }

std::string text(Json json, std::string_view key) { return json.at(key).text(); }

ConstantInput parse_constant_input(Json json) {
  ConstantInput input{text(json, "name"), None{}};
  const Json value = json.at("value").alternative();
  const std::string& kind = value.key();
  if (kind == "as_int") {
    input.value = value.integer();
  } else if (kind == "as_float") {
    input.value = value.real();
  } else if (kind == "as_string") {
    input.value = value.text();
  } else if (kind == "as_bool") {
    input.value = value.boolean();
  } else if (kind != "as_none") {
    value.fail("is a constant of a kind that is not known");
  }
  return input;
}

template <typename Spec>
struct SpecKind {
  std::string_view name;
  Spec (*parse)(Json json);
};

constexpr auto kInputKinds = std::to_array<SpecKind<InputSpec>>({
    {"user_input",
     [](Json json) -> InputSpec { return UserInput{parse_argument(json.at("arg"))}; }},
    {"parameter",
     [](Json json) -> InputSpec {
       return ParameterInput{arg_name(json), text(json, "parameter_name")};
     }},
    {"buffer",
     [](Json json) -> InputSpec {
       return BufferInput{arg_name(json), text(json, "buffer_name"),
                          json.at("persistent").boolean()};
     }},
    {"tensor_constant",
     [](Json json) -> InputSpec {
       return TensorConstantInput{arg_name(json), text(json, "tensor_constant_name")};
     }},
    {"custom_obj",
     [](Json json) -> InputSpec {
       return CustomObjInput{arg_name(json), text(json, "custom_obj_name")};
     }},
    {"token", [](Json json) -> InputSpec { return TokenInput{arg_name(json)}; }},
    {"constant_input", [](Json json) -> InputSpec { return parse_constant_input(json); }},
});

constexpr auto kOutputKinds = std::to_array<SpecKind<OutputSpec>>({
    {"user_output",
     [](Json json) -> OutputSpec { return UserOutput{parse_argument(json.at("arg"))}; }},
    {"loss_output", [](Json json) -> OutputSpec { return LossOutput{arg_name(json)}; }},
    {"buffer_mutation",
     [](Json json) -> OutputSpec {
       return BufferMutation{arg_name(json), text(json, "buffer_name")};
     }},
    {"gradient_to_parameter",
     [](Json json) -> OutputSpec {
       return GradientToParameter{arg_name(json), text(json, "parameter_name")};
     }},
    {"gradient_to_user_input",
     [](Json json) -> OutputSpec {
       return GradientToUserInput{arg_name(json), text(json, "user_input_name")};
     }},
    {"user_input_mutation",
     [](Json json) -> OutputSpec {
       return UserInputMutation{arg_name(json), text(json, "user_input_name")};
     }},
    {"token", [](Json json) -> OutputSpec { return TokenOutput{arg_name(json)}; }},
    {"parameter_mutation",
     [](Json json) -> OutputSpec {
       return ParameterMutation{arg_name(json), text(json, "parameter_name")};
     }},
});

template <typename Table>
auto parse_spec(Json json, const Table& table) {
  const Json value = json.alternative();
  const auto kind = std::ranges::find(table, value.key(), &Table::value_type::name);
  if (kind == table.end()) value.fail("is of a kind that is not known");
  return kind->parse(value);
}

}  // namespace

InputSpec parse_input_spec(Json json) { return parse_spec(json, kInputKinds); }

OutputSpec parse_output_spec(Json json) { return parse_spec(json, kOutputKinds); }

}  // namespace decent::pt2
