// rmsprop against torch::optim::RMSprop, and within its bound.

#include "decent/optim/rules/rmsprop.h"

#include <torch/optim/rmsprop.h>

#include "decent/core/registry.h"
#include "error_bounds.h"
#include "thirty_steps.h"

namespace decent {
namespace {

using testing::After;
using testing::after_thirty_steps;
using testing::Before;
using testing::expect_near;
using testing::input;
using testing::Setting;
using testing::Sum;

struct RmspropOptions {
  double alpha = 0.99, eps = 1e-8, momentum = 0, weight_decay = 0;

  std::unique_ptr<BucketUpdate> make() const {
    return make_update("rmsprop", {{"momentum", momentum}, {"eps", eps}, {"alpha", alpha}});
  }
};

TEST(RmsProp, IsWithinItsBound) {
  const auto formula = [](const RmspropOptions& o) {
    return [=](const Before& at, const Setting& s) -> After {
      const Sum g = at.g + s.weight_decay * at.x;
      const Sum v = o.alpha * at.states[1] + (1 - o.alpha) * (g * g);
      const Sum b = o.momentum * at.states[0] + g / (sqrt(v) + input(o.eps));
      return {at.x + (-s.lr) * b, {b, v}};
    };
  };
  for (const RmspropOptions& o :
       {RmspropOptions{}, RmspropOptions{.alpha = 0.9, .eps = 1e-5, .momentum = 0.9}})
    testing::expect_within_bound(*o.make(), formula(o), rules::RmsProp::kRoundings);
}

void compare_with_torch(const RmspropOptions& options) {
  auto settings = torch::optim::RMSpropOptions(testing::kRate).alpha(options.alpha);
  settings.eps(options.eps).momentum(options.momentum).weight_decay(options.weight_decay);
  // 30 steps of some 12 roundings of 1.1e-16 each of terms below 100: the first quotients are 10.
  expect_near(after_thirty_steps(*options.make(), options.weight_decay),
              testing::after_thirty_steps_of<torch::optim::RMSprop>(settings), 1e-11);
}

TEST(RmsProp, StepsAsTorchDoes) {
  compare_with_torch({});
  compare_with_torch({.weight_decay = 0.1});
  compare_with_torch({.momentum = 0.9});
  compare_with_torch({.alpha = 0.5, .eps = 0.1, .momentum = 0.5, .weight_decay = 0.3});
}

TEST(RmsProp, HasNoMomentumUnlessGiven) {
  EXPECT_EQ(find_named(update_table(), "rmsprop")->key("momentum")->fallback, OptionValue(0.0));
  EXPECT_EQ(default_weight_decay("rmsprop"), 0);
}

}  // namespace
}  // namespace decent
