#include "decent/onnx/translate/logits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decent/onnx/graph/uses.h"
#include "graphs.h"

namespace decent::onnx {
namespace {

using ::testing::ElementsAre;
using testing::node;
using testing::with;

Graph ending_in(std::vector<Node> end) {
  end.insert(end.begin(), node("MatMul", {"x", "w"}, {"z"}));
  return testing::graph({testing::weight("w", {2, 2}), testing::weight("half", {})},
                        std::move(end));
}

TEST(Logits, AreWhatTheLastSoftmaxIsGiven) {
  Graph graph = ending_in({node("Softmax", {"z"}, {"y"}, "end")});
  const auto end = find_probabilities(graph, "y");
  ASSERT_TRUE(end);
  EXPECT_EQ(end->logits, "z");
  EXPECT_EQ(end->node, "node 'end' (Softmax)");
  EXPECT_FALSE(end->is_sigmoid);
}

TEST(Logits, GoThroughTheSameViewsAsProbabilities) {
  Graph graph = ending_in({node("Sigmoid", {"z"}, {"p"}), node("Transpose", {"p"}, {"q"}),
                           node("Identity", {"q"}, {"r"}), node("Cast", {"r"}, {"y"})});
  const auto end = find_probabilities(graph, "y");
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->is_sigmoid);
  EXPECT_THAT(testing::operators_of(graph), ElementsAre("MatMul", "Sigmoid", "Transpose",
                                                        "Identity", "Cast", "Transpose", "Cast"));
  EXPECT_THAT(graph.nodes[5].inputs, ElementsAre("z"));
  EXPECT_EQ(graph.nodes[6].inputs, graph.nodes[5].outputs);
  EXPECT_THAT(graph.nodes[6].outputs, ElementsAre(end->logits));
}

TEST(Logits, AreNoneBehindOperatorsThatChangeProbabilities) {
  Graph graph = ending_in({node("Softmax", {"z"}, {"p"}), node("Mul", {"p", "half"}, {"y"})});
  const auto end = find_probabilities(graph, "y");
  ASSERT_TRUE(end);
  EXPECT_EQ(end->logits, "");
  EXPECT_EQ(end->changed_by, "Mul");
}

TEST(Logits, EndsThatAreNoProbabilities) {
  for (std::vector<Node> end : {std::vector{node("LogSoftmax", {"z"}, {"y"})},
                                {node("Softmax", {"z"}, {"p"}), node("Log", {"p"}, {"y"})},
                                {node("Softmax", {"z"}, {"p"}), node("MatMul", {"p", "w"}, {"y"})},
                                {node("Sigmoid", {"z"}, {"p"}), node("Mul", {"p", "x"}, {"y"})}}) {
    Graph graph = ending_in(std::move(end));
    EXPECT_FALSE(find_probabilities(graph, "y"));
  }
}

TEST(KeepOutputs, TakesOutWhatOnlyTheOthersNeed) {
  auto branch = std::make_shared<Graph>();
  branch->nodes = {node("Neg", {"h"}, {"n"})};
  branch->outputs = {testing::value("n")};
  Graph graph = ending_in({node("Relu", {"z"}, {"h"}), node("Tanh", {"z"}, {"t"}),
                           with(node("If", {"x"}, {"y"}), "then_branch", branch)});
  graph.outputs.push_back(testing::value("t"));
  keep_outputs(graph, {"y"});
  EXPECT_THAT(testing::operators_of(graph), ElementsAre("MatMul", "Relu", "If"));
  ASSERT_EQ(graph.outputs.size(), 1U);
  EXPECT_EQ(graph.outputs.front().name, "y");
}

}  // namespace
}  // namespace decent::onnx
