#include "decent/train/learning_rates.h"

#include <gtest/gtest.h>

#include <cmath>

namespace decent {
namespace {

Recipe recipe_of(const std::string& schedule, LrScaling scaling) {
  Recipe recipe;
  recipe.optimizer.lr = 0.01;
  recipe.optimizer.lr_scaling = scaling;
  recipe.schedule.name = schedule;
  return recipe;
}

constexpr std::int64_t kStepsPerEpoch = 10;

TEST(LearningRates, AreTheRecipesWithoutScaling) {
  const auto rates =
      learning_rates_of(recipe_of("constant", LrScaling::none), /*workers=*/4, 100, kStepsPerEpoch);
  EXPECT_EQ(rates.peak, 0.01);
  EXPECT_EQ(rates.schedule(1), 0.01);
}

TEST(LearningRates, AreScaledBeforeTheSchedule) {
  const Recipe recipe = recipe_of("cosine_warmup", LrScaling::sqrt);
  const auto rates = learning_rates_of(recipe, /*workers=*/4, /*steps=*/100, kStepsPerEpoch);
  EXPECT_EQ(rates.peak, 0.02);
  EXPECT_EQ(rates.schedule(1), 0.02);
  // Half way down, and at the end of the cosine: eta_min is as the recipe gives it.
  EXPECT_NEAR(rates.schedule(51), (0.02 + 1e-6) / 2, 1e-15);  // a few roundings of doubles
  EXPECT_NEAR(rates.schedule(101), 1e-6, 1e-15);
  EXPECT_EQ(learning_rates_of(recipe, 2, 100, kStepsPerEpoch).peak, 0.01 * std::sqrt(2.0));
  EXPECT_EQ(learning_rates_of(recipe, 1, 100, kStepsPerEpoch).peak, 0.01);
}

TEST(LearningRates, CountAWarmUpInEpochs) {
  Recipe recipe = recipe_of("constant", LrScaling::none);
  recipe.schedule.options.set("warmup_epochs", 1.5);
  const auto rates = learning_rates_of(recipe, /*workers=*/2, /*steps=*/100, kStepsPerEpoch);
  EXPECT_EQ(rates.warmup_steps, 15);
  EXPECT_LT(rates.schedule(15), 0.01);
  EXPECT_EQ(rates.schedule(16), 0.01);
  recipe.schedule.options.set("warmup_epochs", kNull);
  recipe.schedule.options.set("warmup_steps", 15);
  EXPECT_EQ(learning_rates_of(recipe, 2, 100, kStepsPerEpoch).text, rates.text);
}

// What decides whether a resumed run has the rates that it had.
TEST(LearningRates, HaveTheSameTextWhereTheyAreTheSame) {
  const auto text = [](const Recipe& recipe, int workers, std::int64_t steps) {
    return learning_rates_of(recipe, workers, steps, kStepsPerEpoch).text;
  };
  const Recipe constant = recipe_of("constant", LrScaling::none);
  EXPECT_EQ(text(constant, 2, 100), text(constant, 4, 200));
  Recipe cosine = recipe_of("cosine_warmup", LrScaling::none);
  EXPECT_NE(text(cosine, 2, 100), text(constant, 2, 100));
  EXPECT_NE(text(cosine, 2, 100), text(cosine, 2, 200));  // t_max follows the steps
  cosine.schedule.options.set("t_max", 100);
  EXPECT_EQ(text(cosine, 2, 100), text(cosine, 2, 200));
  Recipe scaled = cosine;
  scaled.optimizer.lr_scaling = LrScaling::sqrt;
  EXPECT_NE(text(scaled, 4, 100), text(cosine, 4, 100));
  scaled.optimizer.lr /= 2;
  EXPECT_EQ(text(scaled, 4, 100), text(cosine, 4, 100));
  const double eta_min = cosine.schedule.options.get<double>("eta_min");
  cosine.schedule.options.set("eta_min", std::nextafter(eta_min, 1.0));
  EXPECT_NE(text(cosine, 4, 100), text(scaled, 4, 100));  // all digits count
}

}  // namespace
}  // namespace decent
