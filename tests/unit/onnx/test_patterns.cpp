#include "decent/onnx/patterns/patterns.h"

#include <gtest/gtest.h>

#include "graphs.h"

namespace decent::onnx {
namespace {

using testing::floats;
using testing::integers;
using testing::node;
using testing::number;
using testing::operators_of;
using testing::weight;
using testing::with;
using Names = std::vector<std::string>;
using Found = std::map<std::string, std::size_t>;

float float_of(const Node& node, const std::string& name) {
  return std::get<float>(node.find(name)->value);
}

std::int64_t int_of(const Node& node, const std::string& name) {
  return std::get<std::int64_t>(node.find(name)->value);
}

std::vector<Node> erf_gelu(float root) {
  return {number("root", root),           number("one", 1),
          number("half", 0.5F),           node("Div", {"x", "root"}, {"d"}),
          node("Erf", {"d"}, {"e"}),      node("Add", {"e", "one"}, {"a"}),
          node("Mul", {"x", "a"}, {"m"}), node("Mul", {"m", "half"}, {"y"}, "/act/Mul_1")};
}

TEST(Patterns, Gelu) {
  Graph graph = testing::graph({}, erf_gelu(1.41421354F));
  EXPECT_EQ(recognise_patterns(graph, 17), (Found{{"GELU", 1}}));
  ASSERT_EQ(operators_of(graph), Names{"Gelu"});
  EXPECT_EQ(graph.nodes[0].inputs, Names{"x"});
  EXPECT_EQ(graph.nodes[0].outputs, Names{"y"});
  EXPECT_EQ(graph.nodes[0].name, "/act/Mul_1");
  EXPECT_EQ(graph.nodes[0].opset, 20);
}

TEST(Patterns, NoGeluWithAnotherConstantOrAnotherReader) {
  Graph graph = testing::graph({}, erf_gelu(1.5F));
  EXPECT_EQ(recognise_patterns(graph, 17), Found{});
  EXPECT_EQ(graph.nodes.size(), 8U);
  Graph read = testing::graph({}, erf_gelu(1.41421354F));
  read.outputs.push_back(testing::value("e"));
  EXPECT_EQ(recognise_patterns(read, 17), Found{});
}

TEST(Patterns, TanhGelu) {
  Graph graph =
      testing::graph({}, {number("half", 0.5F), number("three", 3), number("factor", 0.044715F),
                          number("root", 0.7978845608F), number("one", 1),
                          node("Mul", {"x", "half"}, {"h"}), node("Pow", {"x", "three"}, {"p"}),
                          node("Mul", {"p", "factor"}, {"f"}), node("Add", {"x", "f"}, {"s"}),
                          node("Mul", {"s", "root"}, {"r"}), node("Tanh", {"r"}, {"t"}),
                          node("Add", {"t", "one"}, {"u"}), node("Mul", {"h", "u"}, {"y"})});
  EXPECT_EQ(recognise_patterns(graph, 17), (Found{{"GELU (tanh)", 1}}));
  ASSERT_EQ(operators_of(graph), Names{"Gelu"});
  EXPECT_EQ(std::get<std::string>(graph.nodes[0].find("approximate")->value), "tanh");
}

TEST(Patterns, TanhGeluOfProducts) {
  Graph graph = testing::graph(
      {}, {number("half", 0.5F), number("factor", 0.044715F), number("root", 0.7978845608F),
           number("one", 1), node("Mul", {"x", "x"}, {"q"}), node("Mul", {"x", "q"}, {"p"}),
           node("Mul", {"factor", "p"}, {"f"}), node("Add", {"x", "f"}, {"s"}),
           node("Mul", {"root", "s"}, {"r"}), node("Tanh", {"r"}, {"t"}),
           node("Add", {"one", "t"}, {"u"}), node("Mul", {"x", "u"}, {"v"}),
           node("Mul", {"half", "v"}, {"y"})});
  EXPECT_EQ(recognise_patterns(graph, 17), (Found{{"GELU (tanh)", 1}}));
  EXPECT_EQ(operators_of(graph), Names{"Gelu"});
}

std::vector<Node> layer_norm(std::int64_t axis) {
  const auto mean = [&](const std::string& of, const std::string& to) {
    return with(node("ReduceMean", {of}, {to}), "axes", std::vector<std::int64_t>{axis});
  };
  return {number("two", 2),
          number("eps", 1e-6F),
          mean("x", "m"),
          node("Sub", {"x", "m"}, {"d"}),
          node("Pow", {"d", "two"}, {"p"}),
          mean("p", "v"),
          node("Add", {"v", "eps"}, {"a"}),
          node("Sqrt", {"a"}, {"s"}),
          node("Div", {"d", "s"}, {"n"}),
          node("Mul", {"n", "w"}, {"g"}),
          node("Add", {"g", "b"}, {"y"})};
}

TEST(Patterns, LayerNorm) {
  for (const std::int64_t axis : {-1, 1}) {
    Graph graph = testing::graph({weight("w", {4}), weight("b", {4})}, layer_norm(axis));
    EXPECT_EQ(recognise_patterns(graph, 14), (Found{{"layer norm", 1}}));
    ASSERT_EQ(operators_of(graph), Names{"LayerNormalization"});
    EXPECT_EQ(graph.nodes[0].inputs, (Names{"x", "w", "b"}));
    EXPECT_EQ(int_of(graph.nodes[0], "axis"), -1);
    EXPECT_FLOAT_EQ(float_of(graph.nodes[0], "epsilon"), 1e-6F);
  }
}

TEST(Patterns, NoLayerNormOverOtherAxes) {
  Graph graph = testing::graph({weight("w", {4}), weight("b", {4})}, layer_norm(0));
  EXPECT_EQ(recognise_patterns(graph, 14), Found{});
}

TEST(Patterns, RmsNorm) {
  Graph graph =
      testing::graph({weight("w", {4}), integers("axes", {-1})},
                     {number("two", 2), number("eps", 1e-5F), node("Pow", {"x", "two"}, {"p"}),
                      node("ReduceMean", {"p", "axes"}, {"v"}), node("Add", {"v", "eps"}, {"a"}),
                      node("Sqrt", {"a"}, {"s"}), node("Reciprocal", {"s"}, {"r"}),
                      node("Mul", {"x", "r"}, {"n"}), node("Mul", {"n", "w"}, {"y"})});
  EXPECT_EQ(recognise_patterns(graph, 18), (Found{{"RMS norm", 1}}));
  ASSERT_EQ(operators_of(graph), Names{"RMSNormalization"});
  EXPECT_EQ(graph.nodes[0].inputs, (Names{"x", "w"}));
}

std::vector<Node> group_norm() {
  return {node("Reshape", {"x", "groups"}, {"z"}),
          node("InstanceNormalization", {"z", "ones", "zeros"}, {"i"}),
          node("Shape", {"x"}, {"shape"}),
          node("Reshape", {"i", "shape"}, {"r"}),
          node("Mul", {"r", "w"}, {"m"}),
          node("Add", {"m", "b"}, {"y"})};
}

TEST(Patterns, GroupNorm) {
  Graph graph =
      testing::graph({integers("groups", {0, 2, -1}), floats("ones", {2}, {1, 1}),
                      floats("zeros", {2}, {0, 0}), weight("w", {4, 1, 1}), weight("b", {4, 1, 1})},
                     group_norm(), 4);
  EXPECT_EQ(recognise_patterns(graph, 17), (Found{{"group norm", 1}}));
  EXPECT_EQ(operators_of(graph),
            (Names{"Constant", "Reshape", "Constant", "Reshape", "GroupNormalization"}));
  EXPECT_EQ(int_of(graph.nodes.back(), "num_groups"), 2);
  EXPECT_EQ(graph.nodes.back().inputs.front(), "x");
}

TEST(Patterns, NoGroupNormWithWeightsOfTheGroupsOrAnotherRank) {
  Graph scaled =
      testing::graph({integers("groups", {0, 2, -1}), weight("ones", {2}),
                      floats("zeros", {2}, {0, 0}), weight("w", {4, 1, 1}), weight("b", {4, 1, 1})},
                     group_norm(), 4);
  EXPECT_EQ(recognise_patterns(scaled, 17), Found{});
  Graph ranked =
      testing::graph({integers("groups", {0, 2, -1}), floats("ones", {2}, {1, 1}),
                      floats("zeros", {2}, {0, 0}), weight("w", {4, 1, 1}), weight("b", {4, 1, 1})},
                     group_norm(), 5);
  EXPECT_EQ(recognise_patterns(ranked, 17), Found{});
}

TEST(Patterns, SafeSoftmax) {
  Graph graph = testing::graph(
      {}, {number("zero", 0), with(node("Softmax", {"x"}, {"p"}), "axis", std::int64_t{-1}),
           node("IsNaN", {"p"}, {"n"}), node("Where", {"n", "zero", "p"}, {"y"})});
  EXPECT_EQ(recognise_patterns(graph, 17), (Found{{"softmax of masked rows", 1}}));
  ASSERT_EQ(operators_of(graph), Names{"SafeSoftmax"});
  EXPECT_EQ(graph.nodes[0].domain, kPatternDomain);
}

std::vector<Node> random_mask(const std::string& shape, float kept, float divided) {
  return {number("zero", 0),
          number("keep", kept),
          number("divisor", divided),
          node("Expand", {"zero", shape}, {"e"}),
          node("RandomUniformLike", {"e"}, {"r"}),
          node("Less", {"r", "keep"}, {"l"}),
          with(node("Cast", {"l"}, {"c"}), "to", std::int64_t{1}),
          node("Div", {"c", "divisor"}, {"d"}),
          node("Mul", {"x", "d"}, {"y"})};
}

TEST(Patterns, DropoutInPlace) {
  std::vector<Node> nodes = random_mask("shape", 0.8F, 0.8F);
  nodes.insert(nodes.begin(), node("Shape", {"x"}, {"shape"}));
  Graph graph = testing::graph({}, nodes);
  EXPECT_EQ(recognise_patterns(graph, 17), (Found{{"dropout of random numbers", 1}}));
  EXPECT_EQ(operators_of(graph), (Names{"Constant", "Dropout"}));
  EXPECT_EQ(float_of(graph.nodes[0], "value_float"), 0.2F);
}

TEST(Patterns, StochasticDepth) {
  Graph graph = testing::graph({integers("rows", {3, 1})}, random_mask("rows", 0.7F, 0.7F));
  EXPECT_EQ(recognise_patterns(graph, 17), (Found{{"dropout of random numbers", 1}}));
  EXPECT_EQ(operators_of(graph),
            (Names{"Constant", "Constant", "CastLike", "Expand", "Dropout", "Mul"}));
  EXPECT_EQ(graph.nodes[3].inputs[1], "rows");
}

TEST(Patterns, NoDropoutWithAnotherScale) {
  Graph graph = testing::graph({integers("rows", {3, 1})}, random_mask("rows", 0.7F, 0.8F));
  EXPECT_EQ(recognise_patterns(graph, 17), Found{});
}

TEST(Patterns, Silu) {
  Graph graph = testing::graph({}, {node("Sigmoid", {"x"}, {"s"}), node("Mul", {"s", "x"}, {"y"})});
  EXPECT_EQ(recognise_patterns(graph, 17), (Found{{"SiLU", 1}}));
  EXPECT_EQ(operators_of(graph), Names{"Swish"});
  Graph gate = testing::graph({}, {node("Sigmoid", {"x"}, {"s"}), node("Relu", {"x"}, {"r"}),
                                   node("Mul", {"s", "r"}, {"y"})});
  EXPECT_EQ(recognise_patterns(gate, 17), Found{});
}

TEST(Patterns, Hardswish) {
  Graph clipped = testing::graph(
      {}, {number("three", 3), number("zero", 0), number("six", 6),
           node("Add", {"x", "three"}, {"a"}), node("Clip", {"a", "zero", "six"}, {"c"}),
           node("Mul", {"x", "c"}, {"m"}), node("Div", {"m", "six"}, {"y"})});
  EXPECT_EQ(recognise_patterns(clipped, 13), (Found{{"hardswish", 1}}));
  EXPECT_EQ(operators_of(clipped), Names{"HardSwish"});
  Graph gated = testing::graph({}, {with(node("HardSigmoid", {"x"}, {"s"}), "alpha", 1.0F / 6),
                                    node("Mul", {"x", "s"}, {"y"})});
  EXPECT_EQ(recognise_patterns(gated, 13), (Found{{"hardswish", 1}}));
}

TEST(Patterns, AreFoundInsideBranches) {
  auto branch = std::make_shared<Graph>();
  branch->nodes = {node("Sigmoid", {"x"}, {"s"}), node("Mul", {"x", "s"}, {"r"})};
  branch->outputs = {testing::value("r")};
  Graph graph = testing::graph({}, {with(node("If", {"x"}, {"y"}), "then_branch", branch)});
  EXPECT_EQ(recognise_patterns(graph, 17), (Found{{"SiLU", 1}}));
}

}  // namespace
}  // namespace decent::onnx
