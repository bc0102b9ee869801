#include "decent/onnx/graph/hoist_constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decent/onnx/graph/inline_functions.h"
#include "graphs.h"

namespace decent::onnx {
namespace {

using ::testing::ElementsAre;
using testing::node;
using testing::weight;
using testing::with;

Node constant(const std::string& output, Tensor tensor, std::uint64_t place = 0) {
  tensor.name.clear();
  if (place != 0) tensor.fields = {{place, place + 4}};
  return with(node("Constant", {}, {output}), "value", std::move(tensor));
}

Model model_of(std::vector<Node> nodes) {
  Model model;
  model.opsets = {{"", 17}};
  model.graph = testing::graph({}, std::move(nodes));
  return model;
}

std::vector<std::string> initializers_of(const Graph& graph) {
  std::vector<std::string> names;
  for (const Tensor& tensor : graph.initializers) names.push_back(tensor.name);
  return names;
}

TEST(HoistConstants, FloatingOnesBecomeInitializers) {
  Model model = model_of({constant("w", weight("", {2, 2})),
                          with(node("Constant", {}, {"b"}), "value_floats", std::vector{1.F, 2.F}),
                          with(node("Constant", {}, {"e"}), "value_float", 1e-5F),
                          constant("shape", testing::integers("", {2, 2})),
                          node("MatMul", {"x", "w"}, {"y"})});
  hoist_constants(model);
  EXPECT_THAT(initializers_of(model.graph), ElementsAre("w", "b"));
  EXPECT_THAT(testing::operators_of(model.graph), ElementsAre("Constant", "Constant", "MatMul"));
  EXPECT_EQ(model.graph.initializers[1].dims, std::vector<std::int64_t>{2});
  EXPECT_THAT(as_doubles(model.graph.initializers[1]), ElementsAre(1, 2));
}

TEST(HoistConstants, ThoseOfABodyStayInIt) {
  auto body = std::make_shared<Graph>();
  body->nodes = {constant("w", weight("", {2, 2})), node("MatMul", {"h", "w"}, {"m"})};
  Model model = model_of({with(node("Loop", {"n", "", "x"}, {"y"}), "body", body)});
  hoist_constants(model);
  EXPECT_TRUE(model.graph.initializers.empty());
  EXPECT_THAT(initializers_of(*body), ElementsAre("w"));
}

TEST(HoistConstants, OneOfAFunctionStaysOneForAllCalls) {
  Model model = model_of({node("Dense", {"x"}, {"a"}, "one"), node("Dense", {"a"}, {"y"}, "two")});
  for (Node& call : model.graph.nodes) call.domain = "own";
  Function dense;
  dense.domain = "own";
  dense.name = "Dense";
  dense.inputs = {"in"};
  dense.outputs = {"out"};
  dense.opsets = {{"", 17}};
  dense.nodes = {constant("w", weight("", {2, 2}), 100), node("MatMul", {"in", "w"}, {"out"})};
  model.functions = {dense};
  Model inlined = inline_functions(model);
  hoist_constants(inlined);
  EXPECT_THAT(initializers_of(inlined.graph), ElementsAre("one/w"));
  ASSERT_THAT(testing::operators_of(inlined.graph), ElementsAre("MatMul", "Identity", "MatMul"));
  EXPECT_THAT(inlined.graph.nodes[1].inputs, ElementsAre("one/w"));
  EXPECT_EQ(inlined.graph.nodes[2].inputs[1], inlined.graph.nodes[1].outputs.front());
}

TEST(HoistConstants, NumbersInPyTorchsCodeAreMarked) {
  Model model = model_of({constant("w", weight("", {2, 2}))});
  model.producer_name = "pytorch";
  hoist_constants(model);
  EXPECT_TRUE(model.graph.initializers.front().is_literal);
}

}  // namespace
}  // namespace decent::onnx
