#include "decent/train/stop_time.h"

#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace decent {
namespace {

using ::testing::HasSubstr;

void see_steps(StopTime& time, double seconds, int count) {
  for (int i = 0; i < count; ++i) time.saw_step(seconds);
}

TEST(StopTime, IsSilentWhereAStepAndASaveFit) {
  StopTime time(1'000'000'000);  // 2 s
  see_steps(time, 20, 10);
  EXPECT_EQ(time.warning(), std::nullopt);
  time.saw_save(5);
  EXPECT_EQ(time.warning(), std::nullopt);
}

TEST(StopTime, WarnsOnceOfLongSteps) {
  StopTime time(0);
  see_steps(time, 26, 1);
  EXPECT_EQ(time.warning(), std::nullopt);  // the first step is slower than others
  see_steps(time, 26, 1);
  const auto warning = time.warning();
  ASSERT_TRUE(warning);
  EXPECT_THAT(*warning, HasSubstr("a step takes 26 s and a save probably 0.1 s"));
  EXPECT_THAT(*warning, HasSubstr("30 s after it is told to stop"));
  EXPECT_THAT(*warning, HasSubstr("SIGUSR1"));
  see_steps(time, 100, 3);
  EXPECT_EQ(time.warning(), std::nullopt);
}

TEST(StopTime, WarnsOfLongSaves) {
  StopTime time(0);
  see_steps(time, 1, 3);
  time.saw_save(24);
  EXPECT_EQ(time.warning(), std::nullopt);
  time.saw_save(25);
  EXPECT_THAT(time.warning().value_or(""), HasSubstr("a step takes 1 s and a save 25 s"));
}

// Before there was a save it is guessed by what there is to write.
TEST(StopTime, GuessesTheFirstSave) {
  StopTime time(20'000'000'000);
  see_steps(time, 0.1, 3);
  EXPECT_THAT(time.warning().value_or(""), HasSubstr("a save probably 40 s"));
}

TEST(StopTime, LeavesOutTheFirstStep) {
  StopTime time(0);
  time.saw_step(60);
  see_steps(time, 1, 5);
  EXPECT_EQ(time.warning(), std::nullopt);
}

TEST(CheckpointBytes, AreThoseOfAllFilesOfAFolder) {
  const NamedTensors state = {{"model.w", at::empty({10}, at::kFloat)},
                              {"optimizer.w.exp_avg", at::empty({10}, at::kFloat)},
                              {"buffer.mean", at::empty({2}, at::kFloat)}};
  EXPECT_EQ(bytes_of(state), 88);
  EXPECT_EQ(checkpoint_bytes(state, 4, /*copies_alike=*/false), 4 * 88);
  EXPECT_EQ(checkpoint_bytes(state, 4, /*copies_alike=*/true), 88 + 3 * 8);
  EXPECT_EQ(checkpoint_bytes(state, 1, /*copies_alike=*/true), 88);
}

}  // namespace
}  // namespace decent
