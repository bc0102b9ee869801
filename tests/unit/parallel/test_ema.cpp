// tests/cli/test_ema.py compares whole runs with PyTorch's AveragedModel.

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include "small_training.h"

namespace decent {
namespace {

testing::Options averaging(double decay) {
  testing::Options options = testing::good_options();
  options.training.ema = decay;
  return options;
}

at::Tensor step(testing::Trained& trained) {
  trained.w.square().sum().backward();
  return trained.w.detach().clone();
}

TEST(Ema, IsThatOfTheWeightsAfterEachStep) {
  testing::Trained trained(averaging(0.75));
  at::Tensor expected = step(trained);
  for (int t = 2; t <= 4; ++t) expected = expected * 0.75 + step(trained) * 0.25;
  trained.parallel.global_avg();
  trained.parallel.use_ema();
  // Some roundings of float32 at a magnitude of at most 4.
  EXPECT_TRUE(at::allclose(trained.w.detach(), expected, 0, 1e-6));
}

TEST(Ema, IsRevertedWithTheAverage) {
  testing::Trained trained(averaging(0.5)), other(averaging(0.5));
  for (int t = 1; t <= 2; ++t) {
    step(trained);
    step(other);
  }
  const at::Tensor weights = trained.w.detach().clone();
  for (int turn = 0; turn < 2; ++turn) {  // the second finds the same moving average
    trained.parallel.global_avg();
    trained.parallel.use_ema();
    EXPECT_FALSE(at::equal(trained.w.detach(), weights));
    trained.parallel.revert_global_avg();
    EXPECT_TRUE(at::equal(trained.w.detach(), weights));
  }
  EXPECT_TRUE(at::equal(step(trained), step(other)));
  EXPECT_TRUE(at::equal(step(trained), step(other)));
}

TEST(Ema, GivesWayToTheAverageOfTheWeights) {
  testing::Trained trained(averaging(0.5));
  for (int t = 1; t <= 2; ++t) step(trained);
  const at::Tensor weights = trained.w.detach().clone();
  trained.parallel.global_avg();
  trained.parallel.use_ema();
  trained.parallel.global_avg(/*will_revert=*/false);
  EXPECT_TRUE(at::equal(trained.w.detach(), weights));
  trained.parallel.use_ema();  // for good
  EXPECT_FALSE(at::equal(trained.w.detach(), weights));
  EXPECT_THROW(trained.parallel.revert_global_avg(), std::logic_error);
}

TEST(Ema, IsInTheTrainingState) {
  testing::Trained trained(averaging(0.5));
  const at::Tensor first = step(trained);
  at::Tensor average;
  for (const auto& [name, tensor] : trained.parallel.training_state())
    if (name == "ema.w") average = tensor;
  ASSERT_TRUE(average.defined());
  EXPECT_TRUE(at::equal(average, first));
}

}  // namespace
}  // namespace decent
