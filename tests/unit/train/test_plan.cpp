#include "decent/train/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/digits.h"
#include "../support/refusal.h"
#include "decent/train/announcements.h"
#include "decent/train/fingerprint.h"
#include "decent/train/updates.h"

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

// ---- a topology that does not fit the number of workers ---------------------------------------

Member one_of(int workers) {
  return {.workers = everyone(workers), .rank = 0, .local_size = workers};
}

// For two workers alone.
TopologyRecipe own_pair() { return {.name = {}, .phases = {{{.ranks = {0, 1}, .weight = 0.5}}}}; }

TEST(TopologyOtherwise, IsInEffectOnAResumeAlone) {
  Recipe recipe = digits_recipe("digits_mlp.pt");
  recipe.parallel.topology = own_pair();
  recipe.parallel.topology_otherwise = "ring";
  const Task task = open_task(recipe, {}, Purpose::training);
  const Plan plan = make_plan(task, one_of(3), ResumePoint{.step = 5});
  EXPECT_EQ(plan.topology, make_topology("ring", 3, 3));
  EXPECT_EQ(plan.topology_otherwise, "ring");
  EXPECT_THAT(testing::refusal([&] { make_plan(task, one_of(3)); }),
              ::testing::StartsWith("parallel.topology: "));
}

TEST(TopologyOtherwise, GivesWayWhereTheNumberFits) {
  Recipe recipe = digits_recipe("digits_mlp.pt");
  recipe.parallel.topology = own_pair();
  const Task task = open_task(recipe, {}, Purpose::training);
  const Plan plan = make_plan(task, one_of(2), ResumePoint{.step = 5});
  ASSERT_EQ(plan.topology.size(), 1U);
  EXPECT_THAT(plan.topology[0][0].ranks, ::testing::ElementsAre(0, 1));
  EXPECT_EQ(plan.topology_otherwise, "");
}

TEST(TopologyOtherwise, MayNotFitEither) {
  Recipe recipe = digits_recipe("digits_mlp.pt");
  recipe.parallel.topology = own_pair();
  recipe.parallel.topology_otherwise = "alternating-exp-ring";
  const Task task = open_task(recipe, {}, Purpose::training);
  EXPECT_THAT(testing::refusal([&] { make_plan(task, one_of(3), ResumePoint{.step = 5}); }),
              ::testing::AllOf(::testing::StartsWith("parallel.topology: "),
                               ::testing::HasSubstr("\nparallel.topology_otherwise does not fit "
                                                    "either: topology alternating-exp-ring")));
}

// Only one method looks at it.
TEST(TopologyOtherwise, IsNotInEffectWhereWeightsAreNotAveraged) {
  Recipe recipe = digits_recipe("digits_mlp.pt");
  recipe.parallel.topology = own_pair();
  recipe.parallel.method = "all_reduce";
  const Task task = open_task(recipe, {}, Purpose::training);
  EXPECT_EQ(make_plan(task, one_of(3), ResumePoint{.step = 5}).topology_otherwise, "");
}

// It is planned again once a checkpoint was looked for.
TEST(TopologyOtherwise, IsInEffectWhereACheckpointMayBeFound) {
  Recipe recipe = digits_recipe("digits_mlp.pt");
  recipe.parallel.topology = own_pair();
  const auto run = prepare_run(recipe, {}, one_of(3), nullptr, /*may_resume=*/true);
  EXPECT_EQ(run.plan.topology_otherwise, "one-peer-exp");
  EXPECT_EQ(value_of(facts_of(run), kTopologyInEffect), "one-peer-exp");
  EXPECT_EQ(topology_name(run), "one-peer-exp");
  EXPECT_THAT(
      line_about_topology(run, 3, {}),
      "topology custom does not fit 3 workers: one-peer-exp replaces it until it fits again "
      "(parallel.topology_otherwise)");
}

TEST(TopologyOtherwise, IsToldOfWhenItGivesWay) {
  Recipe recipe = digits_recipe("digits_mlp.pt");
  recipe.parallel.topology = own_pair();
  const auto run = prepare_run(recipe, {}, one_of(2), nullptr, /*may_resume=*/true);
  EXPECT_EQ(value_of(facts_of(run), kTopologyInEffect), "");
  EXPECT_EQ(line_about_topology(run, 2, {}), "");
  EXPECT_EQ(line_about_topology(run, 2, {{kTopologyInEffect, "one-peer-exp"}}),
            "topology custom fits 2 workers again: one-peer-exp no longer replaces it");
}

}  // namespace
}  // namespace decent
