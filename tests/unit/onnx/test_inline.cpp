#include <gtest/gtest.h>

#include "../support/refusal.h"
#include "decent/onnx/graph/inline_functions.h"
#include "graphs.h"

namespace decent::onnx {
namespace {

using decent::testing::refusal;
using testing::node;
using testing::operators_of;
using testing::with;
using Names = std::vector<std::string>;

Node call(const std::string& function, Names inputs, Names outputs, const std::string& name) {
  Node result = node(function, std::move(inputs), std::move(outputs), name);
  result.domain = "local";
  return result;
}

Node referring(Node node, const std::string& attribute, const std::string& of_function) {
  Attribute reference;
  reference.name = attribute;
  reference.ref_attr_name = of_function;
  node.attributes.push_back(reference);
  return node;
}

Function function(const std::string& name, Names inputs, Names outputs, std::vector<Node> nodes) {
  Function result;
  result.domain = "local";
  result.name = name;
  result.inputs = std::move(inputs);
  result.outputs = std::move(outputs);
  result.nodes = std::move(nodes);
  result.opsets = {{"", 15}};
  return result;
}

Model model_of(std::vector<Node> nodes, std::vector<Function> functions) {
  Model model;
  model.path = "model.onnx";
  model.opsets = {{"", 20}, {"local", 1}};
  model.graph = testing::graph({}, std::move(nodes));
  model.functions = std::move(functions);
  return model;
}

TEST(InlineFunctions, PutsNodesInPlaceOfACall) {
  const Model model = model_of(
      {call("f", {"x"}, {"h"}, "first"), call("f", {"h"}, {"y"}, "second")},
      {function("f", {"a"}, {"b"}, {node("Relu", {"a"}, {"t"}), node("Neg", {"t"}, {"b"})})});
  const Model flat = inline_functions(model);
  EXPECT_EQ(operators_of(flat.graph), (Names{"Relu", "Neg", "Relu", "Neg"}));
  EXPECT_TRUE(flat.functions.empty());
  const std::vector<Node>& nodes = flat.graph.nodes;
  EXPECT_EQ(nodes[0].inputs, Names{"x"});
  EXPECT_EQ(nodes[0].outputs, Names{"first/t"});
  EXPECT_EQ(nodes[1].outputs, Names{"h"});
  EXPECT_EQ(nodes[2].outputs, Names{"second/t"});
  EXPECT_EQ(nodes[3].outputs, Names{"y"});
  EXPECT_EQ(nodes[0].opset, 15);
  EXPECT_EQ(operators_of(model.graph), (Names{"f", "f"}));
}

TEST(InlineFunctions, ResolvesAttributesWithTheirDefaults) {
  Function f = function("f", {"a"}, {"b"},
                        {referring(referring(referring(node("Elu", {"a"}, {"b"}), "alpha", "slope"),
                                             "beta", "offset"),
                                   "gamma", "absent")});
  Attribute offset;
  offset.name = "offset";
  offset.value = 2.0F;
  f.attributes = {"slope", "absent"};
  f.default_attributes = {offset};
  const Model flat =
      inline_functions(model_of({with(call("f", {"x"}, {"y"}, "c"), "slope", 0.5F)}, {f}));
  const Node& elu = flat.graph.nodes.front();
  ASSERT_EQ(elu.attributes.size(), 2U);
  EXPECT_EQ(std::get<float>(elu.find("alpha")->value), 0.5F);
  EXPECT_EQ(std::get<float>(elu.find("beta")->value), 2.0F);
  EXPECT_TRUE(elu.find("alpha")->ref_attr_name.empty());
}

TEST(InlineFunctions, LeavesOutWhatTheCallLeavesOut) {
  const Model flat = inline_functions(
      model_of({call("f", {"x"}, {"", "y"}, "c")},
               {function("f", {"a", "limit"}, {"b", "d"},
                         {node("Clip", {"a", "limit"}, {"b"}), node("Neg", {"b"}, {"d"})})}));
  EXPECT_EQ(flat.graph.nodes[0].inputs, (Names{"x", ""}));
  EXPECT_EQ(flat.graph.nodes[0].outputs, Names{"c/b"});
  EXPECT_EQ(flat.graph.nodes[1].outputs, Names{"y"});
}

TEST(InlineFunctions, FollowsNestedCallsAndBranches) {
  auto branch = std::make_shared<Graph>();
  branch->nodes = {call("inner", {"a"}, {"r"}, "deep")};
  branch->outputs = {testing::value("r")};
  const Function outer = function(
      "outer", {"a"}, {"b"},
      {with(with(node("If", {"a"}, {"b"}), "then_branch", branch), "else_branch", branch)});
  const Function inner = function("inner", {"p"}, {"q"}, {node("Abs", {"p"}, {"q"})});
  const Model flat = inline_functions(model_of({call("outer", {"x"}, {"y"}, "c")}, {outer, inner}));
  const auto& then =
      *std::get<std::shared_ptr<Graph>>(flat.graph.nodes.front().find("then_branch")->value);
  EXPECT_EQ(operators_of(then), Names{"Abs"});
  EXPECT_EQ(then.nodes.front().inputs, Names{"x"});
  EXPECT_EQ(then.nodes.front().outputs.front(), then.outputs.front().name);
  EXPECT_EQ(operators_of(*branch), Names{"inner"});
}

TEST(InlineFunctions, HandsOnAnInputThatIsAnOutput) {
  const Model flat =
      inline_functions(model_of({call("f", {"x"}, {"y"}, "c")}, {function("f", {"a"}, {"a"}, {})}));
  EXPECT_EQ(operators_of(flat.graph), Names{"Identity"});
  EXPECT_EQ(flat.graph.nodes.front().inputs, Names{"x"});
  EXPECT_EQ(flat.graph.nodes.front().outputs, Names{"y"});
}

TEST(InlineFunctions, KeepsNamesApart) {
  const Model flat = inline_functions(model_of(
      {node("Relu", {"x"}, {"c/t"}), call("f", {"c/t"}, {"y"}, "c")},
      {function("f", {"a"}, {"b"}, {node("Relu", {"a"}, {"t"}), node("Neg", {"t"}, {"b"})})}));
  EXPECT_EQ(flat.graph.nodes[1].inputs, Names{"c/t"});
  EXPECT_EQ(flat.graph.nodes[1].outputs, Names{"c/t_1"});
  EXPECT_EQ(flat.graph.nodes[2].inputs, Names{"c/t_1"});
}

TEST(InlineFunctions, RefusesFunctionsThatDoubleTooOften) {
  std::vector<Function> functions;
  for (int i = 0; i < 40; ++i) {
    const std::string next = "f" + std::to_string(i + 1);
    functions.push_back(function("f" + std::to_string(i), {"a"}, {"b"},
                                 {call(next, {"a"}, {"t"}, "l"), call(next, {"t"}, {"b"}, "r")}));
  }
  functions.push_back(function("f40", {"a"}, {"b"}, {node("Relu", {"a"}, {"b"})}));
  const Model model = model_of({call("f0", {"x"}, {"y"}, "c")}, functions);
  EXPECT_EQ(refusal([&] { inline_functions(model); }),
            "model 'model.onnx': its functions, put in place of their calls, make more than 200000 "
            "nodes");
}

}  // namespace
}  // namespace decent::onnx
