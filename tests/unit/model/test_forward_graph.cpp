// What forward calls is seen at any depth. (Forks, functions and interfaces, which need Python to
// be written: tests/cli/test_deep_models.py.)

#include "decent/model/forward_graph.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/serialization/import.h>

#include "../support/modules.h"
#include "decent/model/constants.h"
#include "decent/model/inspect.h"

namespace decent {
namespace {

using ::testing::ElementsAre;
using testing::Module;
using testing::module_with;
using testing::plain_module;

// `inner` behind a call of it in each of these.
const std::vector<std::string> kPlaces = {
    "    return self.inner.forward(x)\n",
    "    if x.size(0) > 3:\n        y = self.inner.forward(x)\n    else:\n        y = x\n    "
    "return y\n",
    "    if x.size(0) > 3:\n        y = x\n    else:\n        y = self.inner.forward(x)\n    "
    "return y\n",
    "    for i in range(3):\n        x = self.inner.forward(x)\n    return x\n",
    "    while x.size(0) > 3:\n        if x.size(0) > 5:\n            x = self.inner.forward(x)\n  "
    "  return x\n"};

Module behind(const std::string& forward, const Module& inner, int depth) {
  if (depth == 0) return inner;
  Module module = plain_module("Outer" + std::to_string(depth));
  module.register_module("inner", behind(forward, inner, depth - 1));
  module.define("def forward(self, x):\n" + forward);
  return module;
}

class ForwardGraph : public ::testing::TestWithParam<std::tuple<std::string, int>> {
 protected:
  ForwardGraph() { use_plain_executor(); }  // as the program does

  static std::shared_ptr<torch::jit::Graph> graph_of(const Module& inner) {
    const testing::Saved saved(behind(std::get<0>(GetParam()), inner, std::get<1>(GetParam())));
    return forward_graph(torch::jit::load(saved.path().string()));
  }
  static std::shared_ptr<torch::jit::Graph> graph_of(const std::string& body) {
    return graph_of(module_with("def forward(self, x):\n" + body));
  }
};
INSTANTIATE_TEST_SUITE_P(Calls, ForwardGraph,
                         ::testing::Combine(::testing::ValuesIn(kPlaces),
                                            ::testing::Values(0, 1, 2, 3, 5)));

TEST_P(ForwardGraph, ShowsData) {
  EXPECT_TRUE(reads_data_of_tensors(*graph_of("    return torch.linear(x, self.w.data)\n")));
  EXPECT_FALSE(reads_data_of_tensors(*graph_of("    return torch.linear(x, self.w.detach())\n")));
}

TEST_P(ForwardGraph, ShowsModesThatAreConstants) {
  EXPECT_THAT(find_fixed_mode_operators(
                  *graph_of("    return torch.dropout(torch.linear(x, self.w), 0.5, True)\n")),
              ElementsAre("1 x dropout"));
  EXPECT_THAT(
      find_fixed_mode_operators(*graph_of(
          "    return torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)\n")),
      ElementsAre("1 x batch_norm"));
  EXPECT_THAT(
      find_fixed_mode_operators(*graph_of("    return torch.dropout(x, 0.5, self.training)\n")),
      ElementsAre());
}

// As in nn.MultiheadAttention: what is reached in one mode only may be told a constant.
TEST_P(ForwardGraph, TakesABranchOnTheModeForTheMode) {
  const std::string rate =
      "    rate = 0.5\n    if not self.training:\n        rate = 0.0\n    if rate > 0.0:\n"
      "        x = torch.dropout(x, rate, True)\n";
  EXPECT_THAT(find_fixed_mode_operators(*graph_of(rate + "    return torch.linear(x, self.w)\n")),
              ElementsAre());
  EXPECT_THAT(find_fixed_mode_operators(*graph_of(
                  "    if self.training:\n        if bool(x.sum() > 0):\n"
                  "            x = torch.dropout(x, 0.5, True)\n    return torch.tanh(x)\n")),
              ElementsAre());
  // A branch on what the mode has changed is none on the mode.
  EXPECT_THAT(find_fixed_mode_operators(
                  *graph_of(rate + "    if bool(x.sum() > 0):\n"
                                   "        x = torch.dropout(x, 0.1, True)\n    return x\n")),
              ElementsAre("1 x dropout"));
}

TEST_P(ForwardGraph, ShowsOperatorsOnTheCpu) {
  EXPECT_THAT(
      find_cpu_operators(*graph_of("    return torch.linear(x, self.w) + torch.zeros([3])\n")),
      ElementsAre("1 x zeros"));
}

// Set in the graph, as torch.jit.trace does.
TEST_P(ForwardGraph, HoldsTheModulesOwnConstants) {
  const Module inner = module_with("def forward(self, x):\n    return torch.tanh(x)\n");
  const auto graph = inner.get_method("forward").graph();
  const torch::jit::WithInsertPoint before_return(graph->return_node());
  torch::jit::Value* factor = graph->insertConstant(at::full({4}, 2.0F));
  graph->return_node()->replaceInput(0,
                                     graph->insert(c10::aten::mul, {graph->outputs()[0], factor}));
  const Module outer = behind(std::get<0>(GetParam()), inner, std::get<1>(GetParam()));
  const auto constants = constants_to_move(*forward_graph(outer));
  ASSERT_EQ(constants.size(), 1U);
  EXPECT_TRUE(constants[0].is_same(factor->node()->t(c10::attr::value)));
}

TEST_P(ForwardGraph, HasNoCalls) {
  std::set<std::string> kinds;
  visit_nodes(*graph_of("    return torch.linear(x, self.w)\n"),
              [&](const torch::jit::Node* node) { kinds.insert(node->kind().toUnqualString()); });
  EXPECT_EQ(kinds.count("CallMethod"), 0U);
  EXPECT_EQ(kinds.count("linear"), 1U);
}

TEST_P(ForwardGraph, TellsCodeApart) {
  const auto hash_of = [](const std::string& body) {
    const Module inner = module_with("def forward(self, x):\n" + body);
    const testing::Saved saved(behind(std::get<0>(GetParam()), inner, std::get<1>(GetParam())));
    return code_hash(torch::jit::load(saved.path().string()));
  };
  EXPECT_EQ(hash_of("    return torch.tanh(x)\n"), hash_of("    return torch.tanh(x)\n"));
  EXPECT_NE(hash_of("    return torch.tanh(x)\n"), hash_of("    return torch.sin(x)\n"));
}

TEST(ForwardGraphOf, AModuleWithoutForwardIsEmpty) {
  const auto graph = forward_graph(plain_module());
  EXPECT_TRUE(graph->nodes().begin() == graph->nodes().end());
}

// Each call stands for itself, as if it had been written out.
TEST(ForwardGraphOf, CountsACallAsOftenAsItStandsThere) {
  Module module = plain_module("Twice");
  module.register_module(
      "inner", module_with("def forward(self, x):\n    return torch.dropout(x, 0.5, True)\n"));
  module.define("def twice(self, x):\n    return self.inner.forward(self.inner.forward(x))\n");
  module.define("def forward(self, x):\n    return self.twice(self.twice(x))\n");
  EXPECT_THAT(find_fixed_mode_operators(*forward_graph(module)), ElementsAre("4 x dropout"));
}

}  // namespace
}  // namespace decent
