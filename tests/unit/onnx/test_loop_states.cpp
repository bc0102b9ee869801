#include "decent/onnx/graph/loop_states.h"

#include <gtest/gtest.h>

#include "graphs.h"

namespace decent::onnx {
namespace {

using testing::node;
using testing::value;
using testing::with;

std::shared_ptr<Graph> body(const std::vector<std::string>& inputs, std::vector<Node> nodes,
                            const std::vector<std::string>& outputs) {
  auto graph = std::make_shared<Graph>();
  for (const std::string& name : inputs) graph->inputs.push_back(value(name));
  graph->nodes = std::move(nodes);
  for (const std::string& name : outputs) graph->outputs.push_back(value(name));
  return graph;
}

/// A loop that carries h and w.
Node loop(const std::shared_ptr<Graph>& body) {
  return with(node("Loop", {"trips", "", "h0", "w0"}, {"h", "w"}), "body", body);
}

std::vector<std::size_t> unchanged_of(const Node& node) {
  std::vector<std::size_t> outputs;
  for (const LoopState& state : unchanged_states(node)) outputs.push_back(state.output);
  return outputs;
}

using Outputs = std::vector<std::size_t>;

TEST(LoopStates, ThatComeOutAsTheyWentInAreUnchanged) {
  const Node node = loop(body({"i", "c", "h_in", "w_in"}, {testing::node("Tanh", {"h_in"}, {"t"})},
                              {"c", "t", "w_in"}));
  const std::vector<LoopState> states = loop_states(node);
  ASSERT_EQ(states.size(), 2U);
  EXPECT_EQ(states[0].input, 2U);
  EXPECT_FALSE(states[0].is_unchanged);
  EXPECT_EQ(states[1].input, 3U);
  EXPECT_EQ(states[1].body_input, 3U);
  EXPECT_EQ(states[1].body_output, 2U);
  EXPECT_EQ(states[1].output, 1U);
  EXPECT_TRUE(states[1].is_unchanged);
}

TEST(LoopStates, MayGoThroughIdentitiesAndThroughLoopsInside) {
  const Node inner =
      with(node("Loop", {"trips", "", "h_in", "w_in"}, {"h_inner", "w_inner"}), "body",
           body({"j", "d", "h2", "w2"}, {node("Mul", {"h2", "w2"}, {"m"})}, {"d", "m", "w2"}));
  const Node node = loop(body({"i", "c", "h_in", "w_in"},
                              {inner, testing::node("Identity", {"w_inner"}, {"w_out"})},
                              {"c", "h_inner", "w_out"}));
  EXPECT_EQ(unchanged_of(node), Outputs{1});
}

TEST(LoopStates, AreUnchangedWhereBothBranchesHandThemOn) {
  const auto branches = [](const std::string& no) {
    return with(with(node("If", {"c"}, {"w_out"}), "then_branch", body({}, {}, {"w_in"})),
                "else_branch", body({}, {node("Neg", {"w_in"}, {"n"})}, {no}));
  };
  const auto unchanged = [&](const std::string& no) {
    return unchanged_of(
        loop(body({"i", "c", "h_in", "w_in"}, {branches(no)}, {"c", "w_out", "w_out"})));
  };
  EXPECT_EQ(unchanged("w_in"), Outputs{1});
  EXPECT_EQ(unchanged("n"), Outputs{});
}

TEST(LoopStates, ThatChangePlacesAreChanged) {
  EXPECT_EQ(unchanged_of(loop(body({"i", "c", "h_in", "w_in"}, {}, {"c", "w_in", "h_in"}))),
            Outputs{});
}

TEST(LoopStates, OfAScanComeFirstAndElementsAfterThem) {
  Node scan =
      with(node("Scan", {"h0", "w0", "xs"}, {"h", "w", "ys"}), "body",
           body({"h_in", "w_in", "x"}, {node("Mul", {"h_in", "w_in"}, {"m"})}, {"m", "w_in", "x"}));
  EXPECT_TRUE(loop_states(scan).empty()) << "it does not say how many inputs it scans";
  scan = with(std::move(scan), "num_scan_inputs", std::int64_t{1});
  EXPECT_EQ(unchanged_of(scan), Outputs{1});
  const std::vector<ElementInput> elements = element_inputs(scan);
  ASSERT_EQ(elements.size(), 1U);
  EXPECT_EQ(elements[0].input, 2U);
  EXPECT_EQ(elements[0].body_input, 2U);
}

TEST(LoopStates, AreNoneWhereTheBodyDoesNotFit) {
  EXPECT_TRUE(loop_states(loop(body({"i", "c", "h_in"}, {}, {"c", "h_in"}))).empty());
  EXPECT_TRUE(loop_states(node("Add", {"a", "b"}, {"y"})).empty());
  EXPECT_TRUE(loop_states(node("Loop", {"trips", "", "h0"}, {"h"})).empty());
}

}  // namespace
}  // namespace decent::onnx
