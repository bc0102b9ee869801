#include "decent/task/loss_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const double kLn10 = std::log(10.0);
const UntrainedLoss kTenClasses{.model = 2.4, .zeros = kLn10};

void see(LossWatch& watch, double loss, int count) {
  for (int i = 0; i < count; ++i) watch.saw(loss);
}

TEST(LossWatch, IsSilentOfARunThatLearns) {
  LossWatch watch(kTenClasses);
  for (int i = 0; i < 100; ++i) watch.saw(2.4 * std::exp(-0.05 * i));
  EXPECT_EQ(watch.warning("1e-3"), std::nullopt);
}

TEST(LossWatch, WarnsOfALossThatRoseAndStayedThere) {
  LossWatch watch(kTenClasses);
  see(watch, 8.1e5, 20);
  const auto warning = watch.warning("50");
  ASSERT_TRUE(warning);
  EXPECT_THAT(*warning, AllOf(HasSubstr("rose from 2.4 before training to 8.1e+05"),
                              HasSubstr("ended at 8.1e+05"), HasSubstr("optimizer.lr 50")));
}

TEST(LossWatch, WarnsOfWeightsThatDiedOnTheWay) {
  LossWatch watch(kTenClasses);
  see(watch, 600, 20);
  see(watch, kLn10 - 0.01, 20);  // what the frequencies of the classes are worth
  EXPECT_THAT(watch.warning("5").value_or(""), HasSubstr("a model that gives zeros has 2.3"));
}

TEST(LossWatch, IsSilentOfARunThatRecovers) {
  LossWatch watch(kTenClasses);
  see(watch, 600, 20);
  see(watch, 1.5, 20);
  EXPECT_EQ(watch.warning("1"), std::nullopt);
}

TEST(LossWatch, IsSilentOfATaskThatNothingIsLearnedOf) {
  LossWatch watch(kTenClasses);
  for (int i = 0; i < 50; ++i) watch.saw(kLn10 + (i % 2 == 0 ? 0.5 : -0.5));
  EXPECT_EQ(watch.warning("1e-3"), std::nullopt);
}

TEST(LossWatch, IsSilentOfSomeOddBatches) {
  LossWatch watch(kTenClasses);
  see(watch, 2.3, 10);
  see(watch, 60, 3);
  see(watch, 2.3, 10);
  EXPECT_EQ(watch.warning("1e-3"), std::nullopt);
}

TEST(LossWatch, IsSilentOfAShortRun) {
  LossWatch watch(kTenClasses);
  see(watch, 1e6, LossWatch::kMedianOf - 1);
  EXPECT_EQ(watch.warning("50"), std::nullopt);
  watch.saw(1e6);
  EXPECT_TRUE(watch.warning("50"));
}

TEST(LossWatch, LeavesOutLossesThatAreNotFinite) {
  LossWatch watch(kTenClasses);
  see(watch, std::numeric_limits<double>::quiet_NaN(), 20);
  see(watch, std::numeric_limits<double>::infinity(), 20);
  see(watch, 1.0, 10);
  EXPECT_EQ(watch.warning("1"), std::nullopt);
}

TEST(LossWatch, TakesTheUntrainedModelWhereThereIsNoLossOfZeros) {
  LossWatch high({.model = 2.0});
  see(high, 6.5, 10);
  EXPECT_TRUE(high.warning("1"));
  LossWatch settled({.model = 2.0});
  see(settled, 100, 10);
  see(settled, 5.5, 10);  // a loss that the model makes itself may rise somewhat
  EXPECT_EQ(settled.warning("1"), std::nullopt);
  LossWatch negative({.model = -3.0});
  see(negative, 1.0, 10);
  EXPECT_EQ(negative.warning("1"), std::nullopt);
}

}  // namespace
}  // namespace decent
