#include "decent/task/finite_check.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "../support/modules.h"

namespace decent {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Parameters w [3, 4], frozen [4], v [2, 3]; buffers mask [4], which begins with -inf as `frozen`
// does, and count.
class FiniteCheckOf : public ::testing::Test {
 protected:
  FiniteCheckOf() : model_(testing::Saved(module()).load()), check_(model_) {}

  static testing::Module module() {
    testing::Module module = testing::plain_module();
    at::Tensor mask = at::full({4}, 1.0F);
    mask[0].fill_(-kInf);
    module.register_parameter("w", testing::weight({3, 4}), false);
    module.register_parameter("frozen", mask.clone(), false);
    module.register_parameter("v", testing::weight({2, 3}), false);
    module.register_buffer("mask", mask);
    module.register_buffer("count", at::full({2}, 7, at::kLong));
    module.define("def forward(self, x):\n    return torch.linear(x, self.w)\n");
    return module;
  }

  void set(const std::string& name, std::int64_t element, float value) {
    const at::NoGradGuard no_grad;
    for (const auto& [known, tensor] : model_.state()) {
      if (known == name) tensor.view(-1)[element].fill_(value);
    }
  }

  Model model_;
  FiniteCheck check_;
};

TEST_F(FiniteCheckOf, LeavesInfinitiesOfTheFileAlone) {
  EXPECT_EQ(check_.find_lost(model_), std::nullopt);
  set("mask", 0, kNan);  // it was not finite before
  EXPECT_EQ(check_.find_lost(model_), std::nullopt);
}

TEST_F(FiniteCheckOf, FindsWhatWasLost) {
  set("w", 5, kNan);
  set("w", 6, -kInf);
  EXPECT_THAT(check_.find_lost(model_),
              Optional(std::string("parameter 'w' (2 of its 12 values)")));
  set("mask", 3, kInf);
  EXPECT_THAT(check_.find_lost(model_), Optional(HasSubstr("buffer 'mask' (1 of its 4 values)")));
}

TEST_F(FiniteCheckOf, TreatsFrozenParametersAsBuffers) {
  set("frozen", 1, kNan);
  EXPECT_THAT(check_.find_lost(model_),
              Optional(std::string("parameter 'frozen' (1 of its 4 values)")));
}

TEST_F(FiniteCheckOf, NamesThreeAtMost) {
  for (const char* name : {"w", "v", "frozen", "mask"}) set(name, 2, kInf);
  EXPECT_THAT(check_.find_lost(model_), Optional(HasSubstr("'v' (1 of its 6 values) and 1 more")));
}

// In the file already: there is no way in which it could be right.
TEST(FiniteCheckAtTheStart, FindsTrainedParameters) {
  testing::Module module = testing::small_module();
  {
    const at::NoGradGuard no_grad;
    module.attr("b").toTensor()[1].fill_(kNan);
  }
  const Model model = testing::Saved(module).load();
  EXPECT_THAT(FiniteCheck(model).find_lost(model),
              Optional(std::string("parameter 'b' (1 of its 3 values)")));
}

}  // namespace
}  // namespace decent
