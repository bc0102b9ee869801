// adagrad against torch::optim::Adagrad. test_error_bounds.cpp has its bound.

#include <torch/optim/adagrad.h>

#include "thirty_steps.h"

namespace decent {
namespace {

using testing::after_thirty_steps;
using testing::after_thirty_steps_of;
using testing::expect_near;

// 30 steps of some 10 roundings of 1.1e-16 each of terms below 10.
constexpr double kFewRoundings = 1e-12;

TEST(Adagrad, StepsAsTorchDoes) {
  const torch::optim::AdagradOptions usual(testing::kRate);
  expect_near(after_thirty_steps(*make_update("adagrad"), 0),
              after_thirty_steps_of<torch::optim::Adagrad>(usual), kFewRoundings);
  auto others = torch::optim::AdagradOptions(testing::kRate).lr_decay(0.1).weight_decay(0.3);
  others.initial_accumulator_value(0.5).eps(0.1);
  expect_near(after_thirty_steps(*make_update("adagrad", {{"lr_decay", 0.1},
                                                          {"initial_accumulator_value", 0.5},
                                                          {"eps", 0.1}}),
                                 0.3),
              after_thirty_steps_of<torch::optim::Adagrad>(others), kFewRoundings);
}

TEST(Adagrad, TakesItsFirstStepAsLongAsTheLearningRate) {
  testing::BucketProblem<double> problem({3});
  const auto at = static_cast<std::size_t>(problem.slices[0].offset);
  problem.x.assign(problem.x.size(), 2);
  problem.state1.assign(problem.x.size(), 0);
  problem.grads[0] = {1e-3, -5, 1e6};
  problem.apply(*make_update("adagrad", {{"eps", 0}}), {}, 0.25);
  for (std::size_t i = 0; i < 3; ++i) {
    const double sign = i == 1 ? -1 : 1;
    EXPECT_NEAR(problem.x[at + i], 2 - 0.25 * sign, 1e-15);  // a few roundings of 1.1e-16
    EXPECT_DOUBLE_EQ(problem.state1[at + i], problem.grads[0][i] * problem.grads[0][i]);
  }
}

}  // namespace
}  // namespace decent
