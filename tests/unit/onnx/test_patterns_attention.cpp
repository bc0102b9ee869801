#include <gtest/gtest.h>

#include <cmath>

#include "decent/onnx/patterns/patterns.h"
#include "graphs.h"

namespace decent::onnx {
namespace {

using testing::floats;
using testing::node;
using testing::number;
using testing::operators_of;
using testing::with;
using Names = std::vector<std::string>;
using Found = std::map<std::string, std::size_t>;

Node transpose(const std::string& from, const std::string& to, std::vector<std::int64_t> perm) {
  return with(node("Transpose", {from}, {to}), "perm", std::move(perm));
}

Node softmax(const std::string& from, const std::string& to) {
  return with(node("Softmax", {from}, {to}), "axis", std::int64_t{-1});
}

/// x is queries and values; `masked` are the nodes between scores "s" and probabilities "p".
Graph attention(std::vector<Node> masked, std::vector<Tensor> initializers = {}) {
  std::vector<Node> nodes = {number("scale", 0.5F), transpose("x", "k", {0, 1, 3, 2}),
                             node("MatMul", {"x", "k"}, {"u"}), node("Mul", {"u", "scale"}, {"s"})};
  nodes.insert(nodes.end(), masked.begin(), masked.end());
  nodes.push_back(node("MatMul", {"p", "x"}, {"y"}));
  return testing::graph(std::move(initializers), std::move(nodes), 4);
}

TEST(AttentionPattern, WithoutAMask) {
  Graph graph = attention({softmax("s", "p")});
  EXPECT_EQ(recognise_patterns(graph, 17), (Found{{"attention", 1}}));
  ASSERT_EQ(operators_of(graph), (Names{"Transpose", "Attention"}));
  EXPECT_EQ(std::get<std::vector<std::int64_t>>(graph.nodes[0].find("perm")->value),
            (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(std::get<float>(graph.nodes[1].find("scale")->value), 0.5F);
  EXPECT_EQ(graph.nodes[1].find("is_causal"), nullptr);
}

TEST(AttentionPattern, WithACausalMask) {
  Graph graph = attention({node("Add", {"s", "mask"}, {"a"}), softmax("a", "p")},
                          {floats("mask", {1, 1, 2, 2}, {0, -INFINITY, 0, 0})});
  EXPECT_EQ(recognise_patterns(graph, 17), (Found{{"attention", 1}}));
  EXPECT_NE(graph.nodes.back().find("is_causal"), nullptr);
  EXPECT_EQ(graph.nodes.back().inputs.size(), 3U);
}

// What a row masked as a whole gives is NaN in the file and zero in PyTorch's function.
TEST(AttentionPattern, NotWithAnyMaskOfAPlainSoftmax) {
  Graph graph = attention({node("Add", {"s", "mask"}, {"a"}), softmax("a", "p")},
                          {floats("mask", {2, 2}, {-INFINITY, -INFINITY, 0, 0})});
  EXPECT_EQ(recognise_patterns(graph, 17), Found{});
}

TEST(AttentionPattern, WithAnyMaskOfASafeSoftmax) {
  Graph graph =
      attention({node("Add", {"s", "mask"}, {"a"}), softmax("a", "q"), node("IsNaN", {"q"}, {"n"}),
                 number("zero", 0), node("Where", {"n", "zero", "q"}, {"p"})},
                {floats("mask", {2, 2}, {-INFINITY, -INFINITY, 0, 0})});
  EXPECT_EQ(recognise_patterns(graph, 17),
            (Found{{"attention", 1}, {"softmax of masked rows", 1}}));
  EXPECT_EQ(graph.nodes.back().inputs.back(), "mask");
}

TEST(AttentionPattern, NotWhereTheProbabilitiesAreRead) {
  Graph graph = attention({softmax("s", "p")});
  graph.outputs.push_back(testing::value("p", 4));
  EXPECT_EQ(recognise_patterns(graph, 17), Found{});
}

}  // namespace
}  // namespace decent::onnx
