#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <vector>

#include "decent/optim/schedule.h"

namespace decent {
namespace {

// torch 2.11's
//   SequentialLR(o, [LinearLR(o, d, 1.0, warmup), CosineAnnealingLR(o, t_max, eta_min)], [warmup])
// on an SGD of learning rate lr, param_groups[0]["lr"] printed with %.17g before each step().
void expect_torch(const CosineWarmup& options, const std::vector<double>& expected) {
  const Schedule schedule = cosine_warmup(options);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    // torch goes on from each value to the next by a product of several factors: some 10 roundings
    // a step.
    EXPECT_NEAR(schedule(static_cast<std::int64_t>(i) + 1), expected[i], 1e-14 * options.lr)
        << "step " << i + 1;
  }
}

TEST(CosineWarmup, EqualsTorch) {
  expect_torch({.lr = 0.4, .warmup_steps = 4, .t_max = 10, .eta_min = 0.02, .warmup_decay = 0.1},
               {0.040000000000000008, 0.13000000000000003, 0.22000000000000006, 0.31000000000000011,
                0.40000000000000002, 0.39070073809607919, 0.36371322893124003, 0.32167919793556993,
                0.26871322893124, 0.20999999999999999, 0.15128677106875998, 0.098320802064430127,
                0.056286771068760011, 0.029299261903920827, 0.02});
  expect_torch({.lr = 1e-3, .warmup_steps = 1, .t_max = 5},  // the defaults of the recipe
               {1.0000000000000001e-05, 0.001, 0.00090460398869028635, 0.00065485398869028627,
                0.00034614601130971377, 9.6396011309713789e-05, 9.9999999999999995e-07});
}

TEST(CosineWarmup, WithoutWarmupStartsAtThePeak) {
  const Schedule schedule = cosine_warmup({.lr = 0.5, .t_max = 8, .eta_min = 0.1});
  EXPECT_EQ(schedule(1), 0.5);
  // cos(pi / 2) is 6e-17 in floating point, not 0.
  EXPECT_NEAR(schedule(5), 0.3, 1e-16);
  EXPECT_NEAR(schedule(3), 0.1 + 0.4 * (1 + std::numbers::sqrt2 / 2) / 2, 1e-16);
}

TEST(CosineWarmup, StaysAtTheEnd) {
  const Schedule schedule =
      cosine_warmup({.lr = 1, .warmup_steps = 2, .t_max = 3, .eta_min = 0.25, .warmup_decay = 0.5});
  EXPECT_EQ(schedule(1), 0.5);
  EXPECT_EQ(schedule(2), 0.75);
  EXPECT_EQ(schedule(3), 1.0);
  EXPECT_GT(schedule(5), 0.25);
  for (const std::int64_t t : {6, 7, 8, 9, 12, 1000000}) EXPECT_EQ(schedule(t), 0.25) << t;
}

TEST(CosineWarmup, OfOneStepGoesStraightDown) {
  const Schedule schedule = cosine_warmup({.lr = 1, .t_max = 1, .eta_min = 0.5});
  EXPECT_EQ(schedule(1), 1.0);
  EXPECT_EQ(schedule(2), 0.5);
}

TEST(CosineWarmup, MayBeAllWarmup) {
  const Schedule schedule = cosine_warmup({.lr = 2, .warmup_steps = 100, .warmup_decay = 0});
  EXPECT_EQ(schedule(1), 0.0);
  EXPECT_EQ(schedule(51), 1.0);
  EXPECT_DOUBLE_EQ(schedule(100), 1.98);
}

TEST(ConstantLr, NeverChanges) {
  const Schedule schedule = constant_lr(0.125);
  for (const std::int64_t t : {1, 2, 1000000000}) EXPECT_EQ(schedule(t), 0.125);
}

}  // namespace
}  // namespace decent
