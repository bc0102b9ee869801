#include <ATen/ops/equal.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/modules.h"

namespace decent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Module;
using testing::Saved;

std::vector<std::string> names_of(const Model::NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& entry : tensors) names.push_back(entry.first);
  return names;
}

TEST(Model, HoldsWhatTheFileHolds) {
  const Saved saved(testing::small_module());
  Model model = saved.load();
  EXPECT_EQ(model.path(), saved.path());
  EXPECT_THAT(names_of(model.buffers()), ElementsAre("scale", "count"));
  EXPECT_EQ(model.state().size(), 5U);
  EXPECT_TRUE(at::equal(model.parameters()[0].second, testing::weight({3, 4})));
  for (const auto& [name, parameter] : model.parameters()) {
    EXPECT_TRUE(parameter.requires_grad() && parameter.is_leaf()) << name;
  }
  EXPECT_TRUE(at::equal(model.buffers()[1].second, at::full({2}, 7, at::kLong)));
  EXPECT_TRUE(model.fixed_mode_operators().empty());
}

TEST(Model, KeepsTheOrderOfRegistration) {
  EXPECT_THAT(names_of(Saved(testing::small_module()).load().parameters()),
              ElementsAre("w", "inner.v", "b"));
}

TEST(Model, CountsATiedParameterOnce) {
  Module module = testing::plain_module();
  const at::Tensor shared = testing::weight({3, 3});
  module.register_parameter("embedding", shared, false);
  module.register_parameter("other", testing::weight({2}), false);
  module.register_parameter("head", shared, false);
  module.define(
      "def forward(self, x):\n    return torch.mm(torch.mm(x, self.embedding), self.head)\n");
  Model model = Saved(module).load();
  EXPECT_THAT(names_of(model.parameters()), ElementsAre("embedding", "other"));
  EXPECT_THAT(names_of(model.state()), ElementsAre("embedding", "other", "head"));
  EXPECT_TRUE(model.state()[0].second.is_same(model.state()[2].second));
}

TEST(Model, KeepsFrozenParametersAmongTheParameters) {
  Module module = testing::small_module();
  module.attr("b").toTensor().set_requires_grad(false);
  Model model = Saved(module).load();
  EXPECT_THAT(names_of(model.parameters()), ElementsAre("w", "inner.v", "b"));
  EXPECT_FALSE(model.parameters()[2].second.requires_grad());
  EXPECT_TRUE(model.parameters()[0].second.requires_grad());
}

TEST(Model, ListsOperatorsOfFixedMode) {
  const auto operators_of = [](const std::string& body) {
    return Saved(testing::module_with("def forward(self, x):\n" + body))
        .load()
        .fixed_mode_operators();
  };
  EXPECT_THAT(
      operators_of("    return torch.dropout(torch.linear(x, self.w), 0.5, self.training)\n"),
      ElementsAre());
  EXPECT_THAT(operators_of("    x = torch.dropout(x, 0.5, True)\n"
                           "    if bool(x.sum() > 0):\n"
                           "        x = torch.dropout(x, 0.1, False)\n"
                           "    return torch.linear(x, self.w)\n"),
              ElementsAre(HasSubstr("2 x dropout")));
  EXPECT_THAT(
      operators_of("    x = torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, True)\n"
                   "    return torch.linear(x, self.w)\n"),
      ElementsAre(HasSubstr("1 x batch_norm")));
}

// Memory that several elements share cannot take a broadcast or an average.
TEST(Model, GivesExpandedBuffersMemoryOfTheirOwn) {
  Module module = testing::small_module();
  module.register_buffer("ids", at::arange(4).expand({3, 4}));
  Model model = Saved(module).load();
  const at::Tensor ids = model.buffers().back().second;
  EXPECT_TRUE(ids.is_contiguous());
  EXPECT_TRUE(at::equal(ids, at::arange(4).expand({3, 4})));
  EXPECT_TRUE(model.module().attr("ids").toTensor().is_contiguous());
}

}  // namespace
}  // namespace decent
