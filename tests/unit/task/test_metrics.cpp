// Metrics of batches, added up over batches and workers.

#include "decent/task/metrics.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "../support/workers.h"
#include "decent/core/error.h"
#include "decent/task/criterion.h"
#include "decent/task/evaluation_sums.h"

namespace decent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Values = std::map<std::string, double>;

at::Tensor doubles(const std::vector<double>& values) { return at::tensor(values, at::kDouble); }

at::Tensor integers(const std::vector<std::int64_t>& values) {
  return at::tensor(values, at::kLong);
}

Recipe recipe_of(std::string_view loss, std::optional<std::vector<std::string>> metrics = {}) {
  Recipe recipe;
  recipe.model.loss = loss;
  recipe.eval.metrics = std::move(metrics);
  return recipe;
}

// All that go with the loss.
std::vector<Metric> metrics_for(const Criterion& criterion) {
  std::vector<Metric> fitting;
  for (const Metric& each : all_metrics())
    if (std::ranges::count(each.targets, criterion.loss().target) > 0) fitting.push_back(each);
  return fitting;
}

Values values_of(EvaluationSums& sums) {
  Values values;
  for (const Score& score : sums.scores()) values[score.name] = score.value;
  return values;
}

// On one batch.
Values measure(std::string_view loss, const at::Tensor& output, const at::Tensor& target) {
  const Criterion criterion(loss);
  EvaluationSums sums(metrics_for(criterion));
  sums.add(criterion.evaluate(output, target, output.dim() == 0 ? 1 : output.size(0)));
  return values_of(sums);
}

TEST(Metrics, OfClasses) {
  // Row k is right, right among two, wrong everywhere, ignored. Of softmax(ln p) the loss is -ln p.
  const at::Tensor probabilities = doubles({.5, .1,  .1,  .1,  .1,  .05, .05,  //
                                            .3, .4,  .1,  .1,  .05, .03, .02,  //
                                            .3, .3,  .1,  .1,  .1,  .06, .04,  //
                                            .7, .05, .05, .05, .05, .05, .05})
                                       .view({4, 7});
  const Values values = measure("cross_entropy", probabilities.log(), integers({0, 0, 6, -100}));
  const double loss = -(std::log(.5) + std::log(.3) + std::log(.04)) / 3;
  constexpr double kOfScores = 1e-14;  // some 20 roundings of 1.1e-16 of values below 10
  EXPECT_NEAR(values.at("loss"), loss, kOfScores);
  EXPECT_NEAR(values.at("perplexity"), std::exp(loss), 10 * kOfScores);  // up to exp(loss) as wide
  EXPECT_EQ(values.at("accuracy"), 1.0 / 3);
  EXPECT_NEAR(values.at("bits_per_byte"), loss / std::numbers::ln2, 2 * kOfScores);
  // Of the classes 0, 1 and 6: predicted 2, 1, 0 times, true 2, 0, 1 times, hit once, never, never.
  EXPECT_DOUBLE_EQ(values.at("precision"), (1.0 / 2) / 3);
  EXPECT_DOUBLE_EQ(values.at("recall"), (1.0 / 2) / 3);
  EXPECT_DOUBLE_EQ(values.at("f1"), (2.0 / 4) / 3);
  EXPECT_DOUBLE_EQ(values.at("mean_iou"), (1.0 / 3) / 3);
  EXPECT_EQ(values.at("dice"), values.at("f1"));
}

// The numbers are those of scikit-learn's jaccard_score and f1_score with average="macro" of the
// pixels that count. Class 3 is predicted only where the mask has none.
TEST(Metrics, OfMasks) {
  const at::Tensor mask = integers({0, 0, 1, 1, 2, 2, 255, 0, 1, 2}).view({1, 2, 5});
  const at::Tensor predicted = integers({0, 1, 1, 1, 0, 2, 3, 0, 2, 2});
  const at::Tensor scores = at::arange(4).eq(predicted.unsqueeze(1)).to(at::kDouble);
  const Criterion criterion("cross_entropy", {.ignore_index = 255, .class_dim = 1, .weights = {}});
  EvaluationSums sums({metric("mean_iou"), metric("dice"), metric("accuracy")});
  sums.add(criterion.evaluate(scores.t().reshape({1, 4, 2, 5}), mask, 1));
  const Values values = values_of(sums);
  EXPECT_DOUBLE_EQ(values.at("mean_iou"), 0.5);
  EXPECT_DOUBLE_EQ(values.at("dice"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(values.at("accuracy"), 6.0 / 9);
}

TEST(Metrics, OfTheHighestClasses) {
  const at::Tensor scores = doubles({5, 4, 3, 2, 1, 0}).repeat({4, 1});
  const auto share = [&](const char* name) {
    const Criterion criterion("nll");
    EvaluationSums sums({metric(name)});
    sums.add(criterion.evaluate(scores, integers({0, 2, 5, -100}), 4));
    return values_of(sums).at(name);
  };
  EXPECT_EQ(share("top1"), 1.0 / 3);
  EXPECT_EQ(share("top3"), 2.0 / 3);
  EXPECT_EQ(share("top5"), 2.0 / 3);
  EXPECT_EQ(share("top6"), 1);
  EXPECT_EQ(share("top100"), 1);  // all of fewer classes
  for (const char* wrong : {"top", "top0", "top05", "top-1", "top5x", "top99999999999999999999"})
    EXPECT_THROW(metric(wrong), UserError) << wrong;
}

TEST(Metrics, OfEvents) {
  const Values values = measure("bce_with_logits", doubles({-1, 2, -3, 0, 5}).view({5, 1}),
                                doubles({0, 1, 1, 0, 0.6}).view({5, 1}));
  EXPECT_EQ(values.at("accuracy"), 0.8);  // only the third has the wrong sign
  EXPECT_EQ(values.at("precision"), 1);
  EXPECT_EQ(values.at("recall"), 2.0 / 3);
  EXPECT_EQ(values.at("f1"), 0.8);
  EXPECT_EQ(values.at("auc"), 4.0 / 6);  // 2 and 5 are above both, -3 above none
}

// A NaN has no rank among scores.
TEST(Metrics, AucOfScoresThatAreNotNumbersIsNone) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto auc = [](const char* loss, const at::Tensor& scores, const at::Tensor& truths) {
    return measure(loss, scores, truths).at("auc");
  };
  EXPECT_TRUE(std::isnan(auc("bce_with_logits", doubles({-1, nan, 3, 2}).view({4, 1}),
                             doubles({0, 1, 1, 0}).view({4, 1}))));
  // Of several events, too, whose others would have an area.
  EXPECT_TRUE(std::isnan(auc("bce_with_logits", doubles({-1, nan, 3, 2}).view({2, 2}),
                             doubles({0, 1, 1, 0}).view({2, 2}))));
  EXPECT_TRUE(std::isnan(auc("cross_entropy", doubles({1, 2, nan, 0, 3, 1, 1, 2, 3}).view({3, 3}),
                             integers({0, 1, 2}))));
  EXPECT_EQ(auc("cross_entropy", doubles({1, 2, 3, 1}).view({2, 2}), integers({1, 0})), 1);
}

TEST(Metrics, OfNumbers) {
  const Values values = measure("l1", doubles({1, 2, 4, -1}), doubles({1.5, 2, 2, 1}));
  EXPECT_EQ(values.size(), 4U);
  EXPECT_EQ(values.at("loss"), 4.5 / 4);
  EXPECT_EQ(values.at("mae"), 4.5 / 4);
  EXPECT_EQ(values.at("mse"), 8.25 / 4);
  // The targets' mean is 1.625, the squares of their distances from it sum to 0.6875.
  EXPECT_EQ(values.at("r2"), 1 - 8.25 / 0.6875);
}

TEST(Metrics, OfNoNumbersAreNotNumbers) {
  const Values values = measure("mse", at::zeros({3, 0}), at::zeros({3, 0}));
  for (const auto& [name, value] : values) EXPECT_TRUE(std::isnan(value)) << name;
}

TEST(Metrics, OfTheModelsOwnLoss) {
  const Criterion own("output");
  EvaluationSums sums(metrics_for(own));
  sums.add(own.evaluate(at::full({}, 2.0), {}, 8));
  sums.add(own.evaluate(at::full({}, 5.0), {}, 4));
  const Values values = values_of(sums);
  EXPECT_EQ(values, (Values{{"loss", 3},
                            {"perplexity", std::exp(3.0)},
                            {"bits_per_byte", 3 / std::numbers::ln2}}));
}

TEST(Metrics, SayWhichWayIsBetter) {
  std::vector<std::string> higher;
  std::vector<std::string> shares;
  for (const Metric& each : all_metrics()) {
    if (each.better == Better::higher) higher.push_back(each.name);
    if (each.is_share) shares.push_back(each.name);
  }
  EXPECT_THAT(higher, ElementsAre("accuracy", "precision", "recall", "f1", "mean_iou", "dice",
                                  "auc", "r2"));
  EXPECT_THAT(shares, ElementsAre("accuracy", "precision", "recall", "f1", "mean_iou", "dice"));
  CheckpointRecipe recipe;
  EXPECT_FALSE(keeps_highest(recipe));
  recipe.keep_best = "r2";
  EXPECT_TRUE(keeps_highest(recipe));
  recipe.keep_best = "mae";
  EXPECT_FALSE(keeps_highest(recipe));
}

TEST(Metrics, AreThoseOfTheRecipe) {
  EXPECT_THAT(metrics_of(recipe_of("cross_entropy")), ElementsAre("accuracy"));
  EXPECT_THAT(metrics_of(recipe_of("bce_with_logits")), ElementsAre("accuracy"));
  EXPECT_THAT(metrics_of(recipe_of("mse")), IsEmpty());
  EXPECT_THAT(metrics_of(recipe_of("mse", {{"r2", "loss", "mae", "r2"}})),
              ElementsAre("r2", "mae"));
  EXPECT_EQ(measured_metrics(recipe_of("mse", {{"r2"}})).front().name, "loss");
  EXPECT_THROW(metrics_of(recipe_of("mse", {{"top5"}})), UserError);
}

// ---- over batches -----------------------------------------------------------------------------

// More of them than are read at once.
TEST(EvaluationSums, DoNotDependOnBatches) {
  constexpr std::int64_t kSamples = 150;
  const Criterion criterion("cross_entropy");
  const at::Tensor output =
      at::arange(kSamples * 7, at::kDouble).mul_(1.7).sin_().mul_(3).view({kSamples, 7});
  const at::Tensor target = at::arange(kSamples, at::kLong).remainder(7);
  EvaluationSums sums(metrics_for(criterion));
  for (std::int64_t i = 0; i < kSamples; ++i)
    sums.add(criterion.evaluate(output.narrow(0, i, 1), target.narrow(0, i, 1), 1));
  const Values values = values_of(sums);
  for (const auto& [name, value] : measure("cross_entropy", output, target)) {
    // 150 additions of 1.1e-16 relative.
    EXPECT_NEAR(values.at(name), value, 1e-13 * value) << name;
  }
}

TEST(EvaluationSums, MergeVariancesWithoutLosingDigits) {
  // Targets around 1e8: the naive sum of squares would lose all of their spread.
  const Criterion criterion("mse");
  EvaluationSums sums({metric("r2"), metric("mae")});
  for (int part = 0; part < 5; ++part) {
    const at::Tensor target = at::arange(4, at::kDouble).add_(1e8 + 4 * part);
    sums.add(criterion.evaluate(target.add(1.0), target, 4));
  }
  const double squares = 20.0 * (20 * 20 - 1) / 12;  // of the distances of 0, 1, .., 19 from 9.5
  const Values values = values_of(sums);
  // Means of numbers near 1e8 are off by 1e-8, which the squares see times 20.
  EXPECT_NEAR(values.at("r2"), 1 - 20 / squares, 1e-9);
  EXPECT_EQ(values.at("mae"), 1);
}

// ---- over workers -----------------------------------------------------------------------------

// Share of targets of each class that are found, in the mean over classes: sums of its own, as many
// as there are classes.
Metric recall_over_classes() {
  return {.name = "recall",
          .targets = {TargetKind::classes},
          .better = Better::higher,
          .sums = [](const EvaluatedBatch& batch) -> BatchSums {
            const at::Tensor right = batch.output.argmax(-1).eq(batch.target);
            const std::int64_t classes = batch.output.size(-1);
            const at::Tensor found = at::zeros({classes}, at::kDouble);
            found.index_add_(0, batch.target, right.to(at::kDouble));
            return {found, at::zeros({classes}, at::kDouble)
                               .index_add_(0, batch.target, at::ones_like(right, at::kDouble))};
          },
          .value =
              [](std::span<const double> sums) {
                const std::size_t classes = sums.size() / 2;
                double total = 0;
                for (std::size_t c = 0; c < classes; ++c) total += sums[c] / sums[classes + c];
                return total / static_cast<double>(classes);
              }};
}

// Worker 2 has no batch and does not know how many classes there are.
TEST(EvaluationSums, AddUpOverWorkersWhateverTheirBatches) {
  const Criterion criterion("cross_entropy");
  const at::Tensor output = doubles({1, 0, 0, 1, 1, 0, 0, 1, 0, 1}).view({5, 2});
  const at::Tensor target = integers({0, 1, 1, 1, 0});
  const auto values = testing::run_workers(3, [&](const testing::Worker& world) {
    EvaluationSums sums({metric("loss"), metric("accuracy"), recall_over_classes()});
    const auto add = [&](std::int64_t begin, std::int64_t count) {
      sums.add(criterion.evaluate(output.narrow(0, begin, count), target.narrow(0, begin, count),
                                  count));
    };
    if (world->rank() == 0) add(0, 2);
    if (world->rank() == 0) add(2, 1);
    if (world->rank() == 1) add(3, 2);
    sums.add_up_over(*world);
    return values_of(sums);
  });
  for (const Values& of_worker : values) {
    EXPECT_EQ(of_worker, values.front());
    EXPECT_EQ(of_worker.at("accuracy"), 0.6);
    EXPECT_EQ(of_worker.at("recall"), (1.0 / 2 + 2.0 / 3) / 2);
  }
  const double right = std::log(1 + std::exp(-1.0));
  EXPECT_NEAR(values.front().at("loss"), (3 * right + 2 * (right + 1)) / 5, 1e-14);  // as above
}

TEST(EvaluationSums, MergeSpreadsOfWorkers) {
  const Criterion criterion("mse");
  const auto values = testing::run_workers(2, [&](const testing::Worker& world) {
    EvaluationSums sums({metric("r2")});
    const at::Tensor target = at::arange(4, at::kDouble).add_(4 * world->rank());
    sums.add(criterion.evaluate(target.add(1.0), target, 4));
    sums.add_up_over(*world);
    return values_of(sums).at("r2");
  });
  // The squares of the distances of 0, 1, .., 7 from 3.5 sum to 42.
  EXPECT_THAT(values, ElementsAre(1 - 8.0 / 42, 1 - 8.0 / 42));
}

}  // namespace
}  // namespace decent
