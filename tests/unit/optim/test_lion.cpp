// lion against the formula of its paper (arXiv 2302.06675, algorithm 2), in float64, and what it
// makes of gradients that are no numbers.

#include "decent/optim/rules/lion.h"

#include "decent/core/registry.h"
#include "error_bounds.h"

namespace decent {
namespace {

using testing::After;
using testing::Before;
using testing::BucketProblem;
using testing::input;
using testing::Setting;
using testing::Sum;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Exact but where the argument is not beyond its own error: nothing is compared there. An infinity
// has none.
Sum sign(const Sum& a) {
  if (!std::isfinite(a.value)) return input(kNone);
  const double error = rules::Lion::kRoundings * testing::kUnit * a.terms + a.slack;
  if (std::abs(a.value) <= error) return {.terms = std::numeric_limits<double>::infinity()};
  return input(a.value > 0 ? 1 : -1);
}

TEST(Lion, IsWithinItsBound) {
  const auto formula = [](double beta1, double beta2) {
    return [=](const Before& at, const Setting& s) -> After {
      const Sum direction = sign(beta1 * at.states[0] + (1 - beta1) * at.g);
      return {(1 - s.lr * s.weight_decay) * at.x + (-s.lr) * direction,
              {beta2 * at.states[0] + (1 - beta2) * at.g}};
    };
  };
  const int n = rules::Lion::kRoundings;
  testing::expect_within_bound(*make_update("lion"), formula(0.9, 0.99), n);
  testing::expect_within_bound(*make_update("lion", {{"betas", std::array{0.5, 0.75}}}),
                               formula(0.5, 0.75), n);
  EXPECT_GT(testing::compare_steps(*make_update("lion", {{"betas", std::array{0.9, 0.999}}}),
                                   formula(0.9, 0.99), n)
                .beyond,
            1000);
}

double sign(double a) { return a > 0 ? 1 : a < 0 ? -1 : 0; }

TEST(Lion, FollowsThePaperForThirtySteps) {
  constexpr double kDecay = 0.3;
  for (const auto& [beta1, beta2] : {std::pair(0.9, 0.99), {0.95, 0.98}, {0.0, 0.5}}) {
    BucketProblem<double> problem({50});
    const auto at = static_cast<std::size_t>(problem.slices[0].offset);
    problem.state0.assign(problem.x.size(), 0);
    problem.slices[0].weight_decay = kDecay;
    std::vector<double> x(problem.x.begin() + problem.slices[0].offset, problem.x.end()), m(50);
    for (int t = 1; t <= 30; ++t) {
      const double lr = 0.1 / t;
      for (std::size_t i = 0; i < 50; ++i) {
        const double g = std::sin(t * static_cast<double>(i + 1));
        problem.grads[0][i] = g;
        x[i] = x[i] - lr * (sign(beta1 * m[i] + (1 - beta1) * g) + kDecay * x[i]);
        m[i] = beta2 * m[i] + (1 - beta2) * g;
      }
      problem.apply(*make_update("lion", {{"betas", std::array{beta1, beta2}}}), {}, lr);
    }
    for (std::size_t i = 0; i < 50; ++i) {
      // 30 steps of some 6 roundings of 1.1e-16 each, of values below 10.
      EXPECT_NEAR(problem.x[at + i], x[i], 1e-12) << i;
      EXPECT_NEAR(problem.state0[at + i], m[i], 1e-12) << i;
    }
  }
}

TEST(Lion, MovesNothingWhereTheDirectionIsZeroAndHidesNothingThatIsNoNumber) {
  BucketProblem<float> problem({6});
  const auto at = static_cast<std::size_t>(problem.slices[0].offset);
  const float inf = std::numeric_limits<float>::infinity();
  problem.x.assign(problem.x.size(), 2);
  problem.state0.assign(problem.x.size(), 0);
  problem.state0[at + 5] = -inf;
  problem.grads[0] = {0, 1e-30F, -3, std::nanf(""), inf, 1};
  problem.apply(*make_update("lion"), {}, 0.25);
  EXPECT_EQ(problem.x[at], 2);
  EXPECT_EQ(problem.x[at + 1], 1.75F);
  EXPECT_EQ(problem.x[at + 2], 2.25F);
  for (const std::size_t i : {3, 4, 5}) EXPECT_TRUE(std::isnan(problem.x[at + i])) << i;
}

TEST(Lion, HasItsOwnBetas) {
  EXPECT_EQ(find_named(update_table(), "lion")->key("betas")->fallback,
            OptionValue(std::array{0.9, 0.99}));
  EXPECT_EQ(default_weight_decay("lion"), 0);
  BucketProblem<float> problem({100});
  BucketProblem<float> other = problem;
  problem.apply(*make_update("lion"), {}, 0.1);
  other.apply(*make_update("lion", {{"betas", std::array{0.9, 0.99}}}), {}, 0.1);
  EXPECT_TRUE(same_bits(problem, other));
}

}  // namespace
}  // namespace decent
