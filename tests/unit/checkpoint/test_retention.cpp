#include "decent/checkpoint/retention.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace decent {
namespace {

using Steps = std::vector<std::int64_t>;

std::vector<Kept> without_scores(std::initializer_list<std::int64_t> steps) {
  std::vector<Kept> checkpoints;
  for (std::int64_t step : steps) checkpoints.push_back({step, std::nullopt});
  return checkpoints;
}

TEST(CheckpointsToRemove, IsAllButTheLatest) {
  EXPECT_EQ(checkpoints_to_remove(without_scores({4, 8, 12, 16}), 3, true), Steps({4}));
  EXPECT_EQ(checkpoints_to_remove(without_scores({4, 8, 12, 16}), 1, true), Steps({4, 8, 12}));
}

TEST(CheckpointsToRemove, IsNothingWhileThereAreFew) {
  EXPECT_EQ(checkpoints_to_remove({}, 3, true), Steps());
  EXPECT_EQ(checkpoints_to_remove(without_scores({4}), 3, true), Steps());
  EXPECT_EQ(checkpoints_to_remove(without_scores({4, 8, 12}), 3, true), Steps());
  EXPECT_EQ(checkpoints_to_remove(without_scores({4, 8}), INT64_MAX, true), Steps());
}

TEST(CheckpointsToRemove, DoesNotDependOnTheOrder) {
  EXPECT_EQ(checkpoints_to_remove(without_scores({16, 4, 12, 8}), 2, true), Steps({4, 8}));
  EXPECT_EQ(checkpoints_to_remove(without_scores({100, 20, 3}), 1, true), Steps({3, 20}));
}

TEST(CheckpointsToRemove, IsNotTheBest) {
  const std::vector<Kept> checkpoints = {{4, 0.5}, {8, 0.9}, {12, 0.7}, {16, 0.6}, {20, 0.6}};
  EXPECT_EQ(checkpoints_to_remove(checkpoints, 2, true), Steps({4, 12}));
  EXPECT_EQ(checkpoints_to_remove(checkpoints, 2, false), Steps({8, 12}));
}

// The best takes no place of the latest, and is no more than one of them where it is among them.
TEST(CheckpointsToRemove, CountsTheBestOnce) {
  const std::vector<Kept> checkpoints = {{4, 0.1}, {8, 0.2}, {12, 0.3}, {16, 0.9}};
  EXPECT_EQ(checkpoints_to_remove(checkpoints, 2, true), Steps({4, 8}));
  EXPECT_EQ(checkpoints_to_remove(checkpoints, 1, true), Steps({4, 8, 12}));
  EXPECT_EQ(checkpoints_to_remove(checkpoints, 1, false), Steps({8, 12}));
}

TEST(CheckpointsToRemove, KeepsTheLaterOfEquals) {
  const std::vector<Kept> scores = {{4, 0.5}, {8, 0.5}, {12, 0.5}, {16, 0.4}};
  EXPECT_EQ(checkpoints_to_remove(scores, 1, true), Steps({4, 8}));
  const std::vector<Kept> losses = {{12, 0.5}, {4, 0.5}, {8, 0.5}, {16, 0.7}};
  EXPECT_EQ(checkpoints_to_remove(losses, 1, false), Steps({4, 8}));
}

TEST(CheckpointsToRemove, MayBeWhatWasNeverMeasured) {
  EXPECT_EQ(checkpoints_to_remove({{4, 0.5}, {8, {}}, {12, 0.4}, {16, {}}}, 1, true),
            Steps({8, 12}));
  EXPECT_EQ(checkpoints_to_remove({{4, {}}, {8, -1.0}, {12, {}}, {16, {}}}, 1, true),
            Steps({4, 12}));
}

TEST(BestCheckpoint, IsTheLaterOfEquals) {
  const std::vector<Kept> checkpoints = {
      {20, 0.9}, {4, 0.5}, {8, 0.9}, {12, std::nullopt}, {16, 0.5}};
  EXPECT_EQ(best_checkpoint(checkpoints, true), 20);
  EXPECT_EQ(best_checkpoint(checkpoints, false), 16);
  EXPECT_EQ(best_checkpoint(without_scores({4, 8}), true), std::nullopt);
}

// After a change of the loss the numbers before it say nothing.
TEST(ComparableScores, AreThoseMeasuredAsTheNewestIs) {
  const Facts focal = {{"model.loss", "focal"}, {"the content of data.eval", "a"}};
  const Facts entropy = {{"model.loss", "cross_entropy"}, {"the content of data.eval", "a"}};
  const std::vector<Kept> scores = comparable_scores(
      {{4, {{"loss", 0.1}}, focal}, {12, {{"loss", 0.8}}, entropy}, {8, {{"loss", 0.9}}, entropy}},
      "loss");
  EXPECT_EQ(best_checkpoint(scores, false), 12);
  EXPECT_EQ(scores.front().score, std::nullopt);
  EXPECT_TRUE(comparable_scores({}, "loss").empty());
}

}  // namespace
}  // namespace decent
