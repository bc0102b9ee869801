#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "../support/refusal.h"
#include "decent/pt2/archive/parse.h"
#include "decent/pt2/program/program.h"
#include "decent/pt2/program/walk.h"

namespace decent::pt2 {
namespace {

using decent::testing::refusal;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Argument parse(const std::string& text) {
  const JsonDocument document(text, "'x'");
  return parse_argument(document.root());
}

// Gives it back where it is of the kind.
template <typename Kind>
Kind parse_as(const std::string& text) {
  const Argument argument = parse(text);
  EXPECT_TRUE(std::holds_alternative<Kind>(argument)) << text;
  const Kind* found = std::get_if<Kind>(&argument);
  return found ? *found : Kind{};
}

std::string refusal_of(const std::string& text) {
  return refusal([&] { parse(text); });
}

TEST(Argument, NumbersTextsAndTruthValues) {
  EXPECT_EQ(parse_as<std::int64_t>(R"({"as_int": -3})"), -3);
  EXPECT_THAT(parse_as<std::vector<std::int64_t>>(R"({"as_ints": [1, 2]})"), ElementsAre(1, 2));
  EXPECT_THAT(parse_as<std::vector<std::vector<std::int64_t>>>(R"({"as_int_lists": [[1], []]})"),
              ElementsAre(ElementsAre(1), ElementsAre()));
  EXPECT_EQ(parse_as<double>(R"({"as_float": "-Infinity"})"), -INFINITY);
  EXPECT_THAT(parse_as<std::vector<double>>(R"({"as_floats": [0.5, 1]})"), ElementsAre(0.5, 1.0));
  EXPECT_THAT(parse_as<std::vector<std::vector<double>>>(R"({"as_float_lists": [[0.5]]})"),
              ElementsAre(ElementsAre(0.5)));
  EXPECT_EQ(parse_as<std::string>(R"({"as_string": "mean"})"), "mean");
  EXPECT_THAT(parse_as<std::vector<std::string>>(R"({"as_strings": ["a", "b"]})"),
              ElementsAre("a", "b"));
  EXPECT_TRUE(parse_as<bool>(R"({"as_bool": true})"));
  EXPECT_THAT(parse_as<std::vector<bool>>(R"({"as_bools": [true, false]})"),
              ElementsAre(true, false));
  const auto complex = parse_as<ComplexValue>(R"({"as_complex": {"real": 1.5, "imag": -2}})");
  EXPECT_EQ(complex.real, 1.5);
  EXPECT_EQ(complex.imag, -2.0);
}

TEST(Argument, Tensors) {
  EXPECT_EQ(parse_as<TensorArgument>(R"({"as_tensor": {"name": "x"}})").name, "x");
  EXPECT_EQ(
      parse_as<std::vector<TensorArgument>>(R"({"as_tensors": [{"name": "x"}, {"name": "y"}]})")[1]
          .name,
      "y");
  const auto optional = parse_as<std::vector<OptionalTensor>>(
      R"({"as_optional_tensors": [{"as_none": true}, {"as_tensor": {"name": "x"}}]})");
  EXPECT_THAT(optional, ElementsAre(std::nullopt, TensorArgument{"x"}));
  EXPECT_EQ(
      parse_as<TensorArgument>(R"({"as_optional_tensor": {"as_tensor": {"name": "x"}}})").name,
      "x");
  parse_as<None>(R"({"as_optional_tensor": {"as_none": true}})");
  parse_as<None>(R"({"as_none": true})");
  const auto nested = parse_as<std::vector<std::vector<TensorArgument>>>(
      R"({"as_nested_tensors": [[{"name": "x"}], []]})");
  EXPECT_THAT(nested, ElementsAre(ElementsAre(TensorArgument{"x"}), ElementsAre()));
}

TEST(Argument, ValuesOfTheGraphOrConstants) {
  EXPECT_EQ(*parse_as<SymIntArgument>(R"({"as_sym_int": {"as_name": "s"}})").name(), "s");
  EXPECT_EQ(*parse_as<SymIntArgument>(R"({"as_sym_int": {"as_int": 3}})").constant(), 3);
  const auto ints = parse_as<std::vector<SymIntArgument>>(
      R"({"as_sym_ints": [{"as_name": "s"}, {"as_int": -1}]})");
  EXPECT_THAT(ints, ElementsAre(SymIntArgument{"s"}, SymIntArgument{-1}));
  EXPECT_EQ(*parse_as<SymFloatArgument>(R"({"as_sym_float": {"as_float": 0.5}})").constant(), 0.5);
  EXPECT_EQ(parse_as<std::vector<SymFloatArgument>>(R"({"as_sym_floats": []})").size(), 0u);
  EXPECT_FALSE(*parse_as<SymBoolArgument>(R"({"as_sym_bool": {"as_bool": false}})").constant());
  EXPECT_EQ(parse_as<std::vector<SymBoolArgument>>(R"({"as_sym_bools": []})").size(), 0u);
}

TEST(Argument, EnumerationsAndNames) {
  EXPECT_EQ(parse_as<ScalarType>(R"({"as_scalar_type": 13})"), ScalarType::bfloat16);
  EXPECT_EQ(parse_as<MemoryFormat>(R"({"as_memory_format": 2})"), MemoryFormat::channels_last);
  EXPECT_EQ(parse_as<Layout>(R"({"as_layout": 7})"), Layout::strided);
  const Device device{"cuda", 1};
  EXPECT_EQ(parse_as<Device>(R"({"as_device": {"type": "cuda", "index": 1}})"), device);
  EXPECT_EQ(parse_as<OperatorArgument>(R"({"as_operator": "torch.ops.aten.add"})").target,
            "torch.ops.aten.add");
  EXPECT_EQ(parse_as<CustomObjArgument>(R"({"as_custom_obj": {"name": "o", "class_fqn": "C"}})")
                .class_fqn,
            "C");
}

TEST(Argument, DictionariesHoldArguments) {
  const auto dict = parse_as<ArgumentDict>(
      R"({"as_string_to_argument": {"z": {"as_int": 1}, "a": {"as_tensor": {"name": "x"}}}})");
  ASSERT_EQ(dict.entries.size(), 2u);
  EXPECT_EQ(dict.entries[0].name, "z");
  EXPECT_EQ(std::get<TensorArgument>(dict.entries[1].value).name, "x");
}

TEST(Argument, GraphsHoldNodes) {
  const auto graph = parse_as<GraphArgument>(
      R"({"as_graph": {"name": "g", "graph": {"inputs": [], "outputs": [], "nodes": [],
          "tensor_values": {}, "is_single_tensor_return": true}}})");
  EXPECT_EQ(graph.name, "g");
  EXPECT_TRUE(graph.graph->is_single_tensor_return);
}

TEST(Argument, ValueNamesAreThoseThatItRefersTo) {
  const auto names = [](const std::string& text) {
    std::vector<std::string> all;
    for_each_value_name(parse(text), [&](const std::string& name) { all.push_back(name); });
    return all;
  };
  EXPECT_THAT(names(R"({"as_tensors": [{"name": "x"}, {"name": "y"}]})"), ElementsAre("x", "y"));
  EXPECT_THAT(names(R"({"as_sym_ints": [{"as_name": "s"}, {"as_int": 1}]})"), ElementsAre("s"));
  EXPECT_THAT(
      names(R"({"as_optional_tensors": [{"as_none": true}, {"as_tensor": {"name": "x"}}]})"),
      ElementsAre("x"));
  EXPECT_THAT(names(R"({"as_nested_tensors": [[{"name": "x"}], [{"name": "y"}]]})"),
              ElementsAre("x", "y"));
  EXPECT_THAT(names(R"({"as_string_to_argument": {"k": {"as_sym_int": {"as_name": "s"}}}})"),
              ElementsAre("s"));
  EXPECT_THAT(names(R"({"as_strings": ["x"]})"), ElementsAre());
}

TEST(Argument, WhatIsNotKnownIsRefused) {
  EXPECT_EQ(refusal_of(R"({"as_what": 1})"),
            "'x': it is an argument of a kind that is not known, 'as_what'");
  EXPECT_EQ(refusal_of(R"({"as_scalar_type": 27})"),
            "'x': as_scalar_type is 27, which is no element type that is known");
  EXPECT_THAT(refusal_of(R"({"as_scalar_type": -1})"),
              HasSubstr("is -1, which is no element type"));
  EXPECT_THAT(refusal_of(R"({"as_memory_format": 5})"), HasSubstr("which is no memory format"));
  EXPECT_THAT(refusal_of(R"({"as_layout": -1})"), HasSubstr("which is no layout"));
  EXPECT_THAT(refusal_of(R"({"as_sym_int": {"as_float": 1.0}})"), HasSubstr("is 'as_float', not"));
  EXPECT_THAT(refusal_of(R"({"as_optional_tensor": {"as_int": 1}})"),
              HasSubstr("is 'as_int', not"));
  EXPECT_THAT(refusal_of(R"({"as_ints": [1, "2"]})"), HasSubstr("as_ints[1] is the text '2'"));
  EXPECT_THAT(refusal_of("{}"), HasSubstr("it has 0 alternatives, not one"));
  EXPECT_THAT(refusal_of("[]"), HasSubstr("it is a list, not an object"));
}

TEST(ScalarType, EveryNumberOfTheSchemaHasASize) {
  int known = 0;
  for (int number = 1; number < 64; ++number) {
    const auto type = find_scalar_type(number);
    if (!type) continue;
    ++known;
    EXPECT_GT(size_of(*type), 0u) << name_of(*type);
    EXPECT_EQ(static_cast<int>(*type), number);
  }
  EXPECT_EQ(known, 21);
  EXPECT_EQ(size_of(ScalarType::unknown), 0u);
}

}  // namespace
}  // namespace decent::pt2
