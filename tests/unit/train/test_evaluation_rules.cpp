#include "decent/train/evaluation/evaluation_rules.h"

#include <gmock/gmock.h>

#include <limits>
#include <memory>
#include <utility>

namespace decent {
namespace {

using ::testing::HasSubstr;

Recipe stopping(const StopRecipe& stop) {
  Recipe recipe;
  recipe.train.stop = stop;
  return recipe;
}

Manifest saved(const EvaluationRules& rules, const Facts& facts = {}) {
  Manifest manifest;
  manifest.evaluations = rules.state();
  manifest.facts = facts;
  return manifest;
}

void saw_all(EvaluationRules& rules, std::int64_t first_step,
             std::initializer_list<double> losses) {
  for (const double loss : losses) rules.saw({.step = first_step++, .loss = loss});
}

TEST(EvaluationRules, StopAfterAsManyEvaluationsWithoutImprovement) {
  EvaluationRules rules(stopping({.patience = 2, .min_delta = 0.5}), nullptr);
  saw_all(rules, 1, {3, 2.75, 2});  // the second is no improvement, the third is
  EXPECT_FALSE(rules.stops());
  saw_all(rules, 4, {1.5});  // not by more than 0.5
  EXPECT_FALSE(rules.stops());
  saw_all(rules, 5, {std::numeric_limits<double>::quiet_NaN()});
  EXPECT_TRUE(rules.stops());
  EXPECT_EQ(rules.stop_text(), "loss has not got better than 2, of step 3, in 2 evaluations");
}

// Manifests have no infinities: a run that resumes must count as the one that does not.
TEST(EvaluationRules, DoNotTakeInfinitiesForTheBest) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EvaluationRules whole(stopping({.patience = 4}), nullptr);
  EvaluationRules first(stopping({.patience = 4}), nullptr);
  for (EvaluationRules* rules : {&whole, &first}) saw_all(*rules, 1, {kInfinity, kInfinity});
  EvaluationRules second(stopping({.patience = 4}), nullptr);
  second.restore(saved(first), {});
  for (EvaluationRules* rules : {&whole, &second}) {
    saw_all(*rules, 3, {kInfinity, -kInfinity});
    EXPECT_TRUE(rules->stops());
    EXPECT_EQ(rules->stop_text(), "loss was not finite in 4 evaluations");
  }
}

TEST(EvaluationRules, KnowWhichValuesAreBetter) {
  EvaluationRules rules(stopping({.metric = "accuracy", .patience = 1}), nullptr);
  rules.saw({.step = 1, .scores = {{"accuracy", 0.5}}});
  rules.saw({.step = 2, .scores = {{"accuracy", 0.75}}});
  EXPECT_FALSE(rules.stops());
  rules.saw({.step = 3, .scores = {{"accuracy", 0.75}}});
  EXPECT_TRUE(rules.stops());
  EXPECT_THAT(rules.stop_text(), HasSubstr("accuracy has not got better than 0.75, of step 2"));
}

TEST(EvaluationRules, DoNotCountTheUntrainedModel) {
  EvaluationRules rules(stopping({.patience = 1}), nullptr);
  saw_all(rules, 0, {0.1, 3, 2});
  EXPECT_FALSE(rules.stops());
}

TEST(EvaluationRules, GoOnFromTheirState) {
  const PlateauOptions options{.lr = 1, .factor = 0.5, .patience = 0};
  const auto first_plateau = std::make_shared<Plateau>(options);
  EvaluationRules first(stopping({.patience = 3}), first_plateau);
  saw_all(first, 1, {1, 2});
  EXPECT_THAT(first.take_news(), HasSubstr("the learning rate falls to 0.5"));
  EXPECT_EQ(first.take_news(), "");

  const auto plateau = std::make_shared<Plateau>(options);
  EvaluationRules second(stopping({.patience = 3}), plateau);
  EXPECT_EQ(second.restore(saved(first), {}), std::nullopt);
  EXPECT_EQ(plateau->lr(3), 0.5);
  EXPECT_EQ(plateau->lr(2), 1);
  saw_all(second, 3, {2});
  EXPECT_FALSE(second.stops());
  saw_all(second, 4, {2});
  EXPECT_TRUE(second.stops());
  EXPECT_EQ(plateau->lr(5), 0.125);
  EXPECT_THAT(second.stop_text(), HasSubstr("better than 1, of step 1, in 3 evaluations"));
}

// Of a checkpoint that was saved before the recipe had the rule.
TEST(EvaluationRules, BeginWhereNothingIsKnown) {
  EvaluationRules rules(stopping({.patience = 1}), nullptr);
  EXPECT_EQ(rules.restore({}, {}), std::nullopt);
  saw_all(rules, 9, {5, 4});
  EXPECT_FALSE(rules.stops());
}

// What was best by one metric, or on other data, is not by another.
TEST(EvaluationRules, BeginAgainWhereValuesCannotBeCompared) {
  const PlateauOptions options{.lr = 1, .factor = 0.5, .patience = 0, .cooldown = 5};
  EvaluationRules first(stopping({.metric = "loss", .patience = 3}),
                        std::make_shared<Plateau>(options));
  saw_all(first, 1, {1, 2});
  const Manifest then = saved(first, {{"the content of data.eval", "one"}});

  for (const auto& [metric, content] : {std::pair("accuracy", "one"), std::pair("loss", "two")}) {
    Recipe recipe = stopping({.metric = metric, .patience = 1});
    recipe.schedule.options.set("metric", std::string(metric));
    const auto plateau = std::make_shared<Plateau>(options);
    EvaluationRules rules(recipe, plateau);
    EXPECT_THAT(rules.restore(then, {{"the content of data.eval", content}}).value(),
                HasSubstr("train.stop and schedule: plateau: the best value until now"));
    EXPECT_EQ(plateau->lr(3), 0.5);  // the rate that was reached stays
    EXPECT_EQ(plateau->state().cooldown, 0);
    rules.saw({.step = 3, .loss = 9, .scores = {{"accuracy", 0}}});
    EXPECT_FALSE(rules.stops());  // it is the best by what counts now
  }
}

}  // namespace
}  // namespace decent
