#include "decent/task/metrics.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

using Sums = std::span<const double>;

// ---- of the loss ------------------------------------------------------------------------------

BatchSums loss_and_elements(const EvaluatedBatch& batch) { return {batch.loss, batch.elements}; }

double ratio(Sums sums) { return sums[0] / sums[1]; }

// ---- of classes and events --------------------------------------------------------------------

// The highest class, or the sign of an event's logit.
BatchSums right_and_all(const EvaluatedBatch& batch) {
  if (batch.kind == TargetKind::events) {
    const at::Tensor truth = batch.target.to(at::kDouble).gt(0.5);
    return {batch.output.gt(0).eq(truth).sum(), batch.elements};
  }
  const at::Tensor right = batch.output.argmax(-1).eq(batch.target).logical_and(batch.counts);
  return {right.sum(), batch.elements};
}

// The share of targets among the `count` highest classes, or among all where there are fewer.
Metric top(std::int64_t count) {
  return {.name = "top" + std::to_string(count),
          .targets = {TargetKind::classes},
          .better = Better::higher,
          .is_share = true,
          .sums = [count](const EvaluatedBatch& batch) -> BatchSums {
            const std::int64_t most = std::min(count, batch.output.size(-1));
            const at::Tensor highest = std::get<1>(batch.output.topk(most, -1));
            const at::Tensor among = highest.eq(batch.target.unsqueeze(-1)).any(-1);
            return {among.logical_and(batch.counts).sum(), batch.elements};
          },
          .value = ratio};
}

// ---- of numbers -------------------------------------------------------------------------------

at::Tensor error_of(const EvaluatedBatch& batch) {
  return batch.output.to(at::kDouble) - batch.target.to(at::kDouble);
}

BatchSums squares_and_numbers(const EvaluatedBatch& batch) {
  return {error_of(batch).square().sum(), batch.elements};
}

BatchSums distances_and_numbers(const EvaluatedBatch& batch) {
  return {error_of(batch).abs().sum(), batch.elements};
}

// Of the targets: how many numbers, their mean, the squares of their distances from it; and the
// squared error.
BatchSums spread_and_error(const EvaluatedBatch& batch) {
  const auto numbers = static_cast<double>(batch.target.numel());
  if (numbers == 0) return {0.0, 0.0, 0.0, 0.0};
  const at::Tensor truth = batch.target.to(at::kDouble);
  const at::Tensor mean = truth.mean();
  return {numbers, mean, (truth - mean).square().sum(), error_of(batch).square().sum()};
}

// As Chan, Golub and LeVeque merge means and squares ("Updating formulae and a pairwise algorithm
// for computing sample variances", 1979), which loses no digits to large means.
void merge_spread_and_error(std::span<double> sums, Sums others) {
  if (others[0] == 0) return;
  const double both = sums[0] + others[0];
  const double apart = others[1] - sums[1];
  sums[2] += others[2] + apart * apart * sums[0] * others[0] / both;
  sums[1] += apart * others[0] / both;
  sums[0] = both;
  sums[3] += others[3];
}

// ---- the table --------------------------------------------------------------------------------

std::vector<Metric> make_table() {
  using enum TargetKind;
  return {
      {.name = "loss",
       .targets = {classes, events, numbers, none},
       .sums = loss_and_elements,
       .value = ratio},
      {.name = "accuracy",  // share of right predictions
       .targets = {classes, events},
       .better = Better::higher,
       .is_share = true,
       .sums = right_and_all,
       .value = ratio},
      top(5),
      {.name = "perplexity",  // exp of the loss
       .targets = {classes, none},
       .sums = loss_and_elements,
       .value = [](Sums sums) { return std::exp(ratio(sums)); }},
      {.name = "mse",  // mean squared error
       .targets = {numbers},
       .sums = squares_and_numbers,
       .value = ratio},
      {.name = "mae",  // mean absolute error
       .targets = {numbers},
       .sums = distances_and_numbers,
       .value = ratio},
      {.name = "r2",  // 1 - sum (y - f)^2 / sum (y - mean y)^2, over all numbers of all targets
       .targets = {numbers},
       .better = Better::higher,
       .sums = spread_and_error,
       .merge = merge_spread_and_error,
       .value = [](Sums sums) { return 1 - sums[3] / sums[2]; }},
  };
}

bool goes_with(const Metric& metric, TargetKind target) {
  return std::find(metric.targets.begin(), metric.targets.end(), target) != metric.targets.end();
}

std::vector<std::string> names_of(const std::vector<Metric>& metrics) {
  std::vector<std::string> names;
  for (const Metric& each : metrics) names.push_back(each.name);
  return names;
}

std::vector<Metric> metrics_for(TargetKind target) {
  std::vector<Metric> fitting;
  for (const Metric& each : all_metrics())
    if (goes_with(each, target)) fitting.push_back(each);
  return fitting;
}

}  // namespace

void add_up(std::span<double> sums, std::span<const double> others) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += others[i];
}

const std::vector<Metric>& all_metrics() {
  static const std::vector<Metric> metrics = make_table();
  return metrics;
}

const Metric& metric(std::string_view name) {
  for (const Metric& each : all_metrics())
    if (each.name == name) return each;
  throw UserError("unknown metric '" + std::string(name) + "'; valid: " + join(metric_names()));
}

std::vector<std::string> metric_names() { return names_of(all_metrics()); }

std::vector<std::string> metrics_of(const Recipe& recipe) {
  const LossFunction& loss = loss_function(recipe.model.loss);
  if (!recipe.eval.metrics) {
    if (!goes_with(metric("accuracy"), loss.target)) return {};
    return {"accuracy"};
  }
  const std::vector<std::string> valid = names_of(metrics_for(loss.target));
  std::vector<std::string> metrics;
  for (const std::string& name : *recipe.eval.metrics) {
    if (std::find(valid.begin(), valid.end(), name) == valid.end()) {
      throw UserError("eval.metrics: the loss " + std::string(loss.name) + " has no " + name +
                      "; it has " + join(valid));
    }
    const bool known = std::find(metrics.begin(), metrics.end(), name) != metrics.end();
    if (name != "loss" && !known) metrics.push_back(name);
  }
  return metrics;
}

std::vector<Metric> measured_metrics(const Recipe& recipe) {
  std::vector<Metric> metrics = {metric("loss")};
  for (const std::string& name : metrics_of(recipe)) metrics.push_back(metric(name));
  return metrics;
}

bool keeps_highest(const CheckpointRecipe& recipe) {
  return recipe.keep_best && metric(*recipe.keep_best).better == Better::higher;
}

}  // namespace decent
