#include "decent/train/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/digits.h"
#include "../support/refusal.h"

namespace decent {
namespace {

using testing::digits_recipe;

Member second_of_four() { return {.workers = everyone(4), .rank = 1, .local_size = 4}; }

// 1442 samples, 4 workers of 32: 11 updates an epoch, of which there are two.
TEST(Plan, CountsTheStepsOfTheEpochs) {
  const Task task = open_task(digits_recipe("digits_mlp.pt"), {}, Purpose::training);
  const Plan plan = make_plan(task, second_of_four());
  EXPECT_EQ(plan.total_steps, 22);
  EXPECT_EQ(plan.first_step, 0);
  EXPECT_FALSE(plan.resumes);
}

TEST(Plan, ResumesWithTheSamplesAndRatesThatAreLeft) {
  const Task task = open_task(digits_recipe("digits_mlp.pt"), {}, Purpose::training);
  const Plan whole = make_plan(task, second_of_four());
  for (const std::int64_t step : {0, 5, 11, 21}) {
    const ResumePoint point{.step = step, .position = whole.sampler->position(step)};
    const Plan rest = make_plan(task, second_of_four(), point);
    EXPECT_TRUE(rest.resumes);
    EXPECT_EQ(rest.first_step, step);
    EXPECT_EQ(rest.total_steps, whole.total_steps);
    for (std::int64_t next = step; next < whole.total_steps; ++next) {
      EXPECT_EQ(rest.sampler->micro_batch(next, 0), whole.sampler->micro_batch(next, 0));
      EXPECT_EQ(rest.rates.schedule(next + 1), whole.rates.schedule(next + 1));
    }
  }
}

TEST(Plan, TakesPhasesOfTheRecipe) {
  Recipe recipe = digits_recipe("digits_mlp.pt");
  recipe.parallel.topology.phases = {
      {{.ranks = {3, 0}, .weight = 0.25}, {.ranks = {1, 2}, .weight = 0.5}}};
  const Task task = open_task(recipe, {}, Purpose::training);
  const Plan plan = make_plan(task, second_of_four());
  ASSERT_EQ(plan.topology.size(), 1U);
  EXPECT_THAT(plan.topology[0][0].ranks, ::testing::ElementsAre(0, 3));
  EXPECT_EQ(plan.topology[0][0].self_weight, 0.25);
}

TEST(Plan, NamesTheKeyOfPhasesThatCannotBe) {
  Recipe recipe = digits_recipe("digits_mlp.pt");
  recipe.parallel.topology.phases = {{{.ranks = {0, 1}, .weight = 0.5}}};
  const Task task = open_task(recipe, {}, Purpose::training);
  EXPECT_THAT(testing::refusal([&] { make_plan(task, second_of_four()); }),
              ::testing::StartsWith("parallel.topology: "));
}

}  // namespace
}  // namespace decent
