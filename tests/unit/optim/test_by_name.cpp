#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "../support/refusal.h"
#include "bucket_problem.h"
#include "decent/optim/schedule.h"

namespace decent {
namespace {

using ::testing::AllOf;
using testing::BucketProblem;
using ::testing::HasSubstr;
using testing::refusal;

void expect_same_update(std::string_view name, const UpdateOptions& options,
                        const BucketUpdate& expected) {
  const auto update = make_update(name, options);
  EXPECT_EQ(update->state_names(), expected.state_names()) << name;
  BucketProblem<float> problem({100, 7});
  BucketProblem<float> other = problem;
  problem.apply(*update, testing::mixing_of(0.5, 0.5), 0.1);
  other.apply(expected, testing::mixing_of(0.5, 0.5), 0.1);
  EXPECT_EQ(problem.x, other.x) << name;
}

TEST(MakeUpdate, MakesEveryNamedOne) {
  const AdamOptions adam{.beta1 = 0.8, .beta2 = 0.98, .eps = 1e-3};
  AdamOptions adamw = adam;
  adamw.decoupled_weight_decay = true;
  const UpdateOptions options{
      .momentum = 0.7, .nesterov = true, .beta1 = 0.8, .beta2 = 0.98, .eps = 1e-3, .accum_iter = 3};
  expect_same_update("sgd", options, *make_sgd({.momentum = 0.7, .nesterov = true}));
  expect_same_update("adam", options, *make_adam(adam));
  expect_same_update("adamw", options, *make_adam(adamw));
  expect_same_update("accum_adam", options, *make_accum_adam({adam, 3}));
  expect_same_update("accum_adamw", options, *make_accum_adam({adamw, 3}));
  for (const std::string& name : update_names()) EXPECT_NO_THROW(make_update(name));
}

TEST(MakeUpdate, RefusesWhatIsNone) {
  EXPECT_THAT(refusal([] { make_update("rmsprop"); }),
              AllOf(HasSubstr("'rmsprop'"), HasSubstr("sgd, adam, adamw")));
  EXPECT_THAT(refusal([] { make_update("w"); }), HasSubstr("unknown"));
  const auto with = [](const UpdateOptions& options, std::string_view name) {
    return refusal([&] { make_update(name, options); });
  };
  EXPECT_THAT(with({.momentum = 1.0}, "sgd"), HasSubstr("momentum is 1.000000"));
  EXPECT_THAT(with({.momentum = std::nan("")}, "sgd"), HasSubstr("[0, 1)"));
  EXPECT_THAT(with({.nesterov = true}, "sgd"), HasSubstr("nesterov needs a momentum"));
  EXPECT_THAT(with({.beta1 = -0.1}, "adam"), HasSubstr("beta1"));
  EXPECT_THAT(with({.beta2 = 1.0}, "accum_adamw"), HasSubstr("beta2"));
  EXPECT_THAT(with({.eps = -1}, "adamw"), HasSubstr("eps"));
  EXPECT_THAT(with({.accum_iter = 0}, "accum_adam"), HasSubstr("accum_iter is 0"));
  EXPECT_EQ(with({.momentum = 2, .accum_iter = 0}, "adam"), "accepted");  // not its own
}

// Its first round never ends and must be counted as the first: with moments that are still zero
// each of its updates is Adam's first, x - lr * g / (|g| + eps).
TEST(MakeUpdate, TakesTheLongestRound) {
  constexpr std::int64_t kLongest = std::numeric_limits<std::int64_t>::max();
  constexpr double kLr = 0.1;
  const UpdateOptions options{.accum_iter = kLongest};
  BucketProblem<float> problem({100, 7});
  for (auto* state : {&problem.state0, &problem.state1, &problem.state2}) {
    std::fill(state->begin(), state->end(), 0.0F);
  }
  for (BucketSlice& slice : problem.slices) slice.updates = 2;
  const BucketProblem<float> before = problem;
  problem.apply(*make_update("accum_adam", options), testing::mixing_of(1, 0), kLr);
  for (std::size_t i = 0; i < problem.slices.size(); ++i) {
    const auto offset = static_cast<std::size_t>(problem.slices[i].offset);
    for (std::size_t j = 0; j < problem.grads[i].size(); ++j) {
      const double g = problem.grads[i][j];
      const double expected = before.x[offset + j] - kLr * g / (std::abs(g) + options.eps);
      // Some roundings of float32 at a magnitude of at most 4.
      EXPECT_NEAR(problem.x[offset + j], expected, 1e-6) << j;
    }
  }
}

TEST(MakeSchedule, MakesEveryNamedOne) {
  const CosineWarmup options{.lr = 0.4, .warmup_steps = 4, .t_max = 10};
  const Schedule cosine = make_schedule("cosine_warmup", options);
  for (const std::int64_t t : {1, 3, 5, 9, 20}) EXPECT_EQ(cosine(t), cosine_warmup(options)(t));
  EXPECT_EQ(make_schedule("constant", options)(7), 0.4);
}

TEST(MakeSchedule, RefusesWhatIsNone) {
  EXPECT_THAT(refusal([] { make_schedule("linear", {}); }),
              AllOf(HasSubstr("'linear'"), HasSubstr("constant, cosine_warmup")));
  EXPECT_THAT(refusal([] { cosine_warmup({.t_max = 0}); }), HasSubstr("t_max is 0"));
  EXPECT_THAT(refusal([] { cosine_warmup({.warmup_steps = -1}); }),
              HasSubstr("warmup_steps is -1"));
}

}  // namespace
}  // namespace decent
