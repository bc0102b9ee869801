#include "decent/task/metrics.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <utility>

#include "decent/config/names.h"
#include "decent/core/error.h"
#include "decent/core/registry.h"
#include "decent/core/text.h"

namespace decent {
namespace {

using Sums = std::span<const double>;

// ---- of the loss ------------------------------------------------------------------------------

BatchSums loss_and_elements(const EvaluatedBatch& batch) { return {batch.loss, batch.loss_weight}; }

double ratio(Sums sums) { return sums[0] / sums[1]; }

// ---- of classes and events --------------------------------------------------------------------

// Counts right predictions: the highest class, or the sign of an event's logit.
BatchSums right_and_all(const EvaluatedBatch& batch) {
  if (batch.kind == TargetKind::events)
    return {batch.output.gt(0).eq(true_events(batch)).sum(), batch.elements};
  const at::Tensor right = batch.output.argmax(-1).eq(batch.target).logical_and(batch.counts);
  return {right.sum(), batch.elements};
}

constexpr const char* kTopFamily = "top<k>";

// The share of targets among the `count` highest classes, or among all if there are fewer.
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

// For each label: how often it is predicted and true, predicted, true. A label is a class, or an
// event of the last dimension.
BatchSums hits_by_label(const EvaluatedBatch& batch) {
  if (batch.kind == TargetKind::events) {
    const at::Tensor predicted = in_columns(batch.output).gt(0);
    const at::Tensor truth = in_columns(true_events(batch));
    return {predicted.logical_and(truth).sum(0), predicted.sum(0), truth.sum(0)};
  }
  const std::int64_t classes = batch.output.size(-1);
  const at::Tensor predicted = batch.output.argmax(-1).masked_select(batch.counts);
  const at::Tensor truth = batch.target.masked_select(batch.counts);
  return {predicted.masked_select(predicted.eq(truth)).bincount({}, classes),
          predicted.bincount({}, classes), truth.bincount({}, classes)};
}

// The mean of `value` over the labels that were predicted or true at least once; 0 for a label
// whose value would be 0 / 0. As scikit-learn's scores with average="macro" and zero_division=0,
// and as torchmetrics'.
std::function<double(Sums)> macro(double (*value)(double hits, double predicted, double truth)) {
  return [value](Sums sums) {
    const std::size_t labels = sums.size() / 3;
    double sum = 0;
    double count = 0;
    for (std::size_t i = 0; i < labels; ++i) {
      const double predicted = sums[labels + i];
      const double truth = sums[2 * labels + i];
      if (predicted + truth == 0) continue;
      sum += value(sums[i], predicted, truth);
      ++count;
    }
    return count == 0 ? 0 : sum / count;
  };
}

double share(double part, double whole) { return whole == 0 ? 0 : part / whole; }

Metric by_label(std::string name, double (*value)(double hits, double predicted, double truth)) {
  return {.name = std::move(name),
          .targets = {TargetKind::classes, TargetKind::events},
          .better = Better::higher,
          .is_share = true,
          .sums = hits_by_label,
          .value = macro(value)};
}

double dice(double hits, double predicted, double truth) {
  return share(2 * hits, predicted + truth);
}

Metric of_classes(Metric metric) {
  metric.targets = {TargetKind::classes};
  return metric;
}

// ---- the area under the ROC curve, exactly: a metric that keeps every score ------------------

// The sums are these, then kValues numbers in rows, one for each sample: its scores, then its class
// or whether each event is true.
enum Head : std::size_t { kValues, kScores, kTruths, kHead };

BatchSums rows_of(const at::Tensor& scores, const at::Tensor& truths) {
  const at::Tensor rows = at::cat({scores.to(at::kDouble), truths.to(at::kDouble)}, 1);
  return {static_cast<double>(rows.numel()), static_cast<double>(scores.size(1)),
          static_cast<double>(truths.size(1)), rows};
}

BatchSums scores_and_truths(const EvaluatedBatch& batch) {
  if (batch.kind == TargetKind::events)
    return rows_of(in_columns(batch.output), in_columns(true_events(batch)));
  const at::Tensor counted = batch.counts.nonzero().reshape({-1});
  const at::Tensor scores = batch.output.to(at::kDouble).softmax(-1).index_select(0, counted);
  return rows_of(scores, batch.target.index_select(0, counted).unsqueeze(1));
}

// If a worker had fewer samples than others, zeros follow its rows.
void append(std::vector<double>& kept, Sums others) {
  if (others.empty() || others[kValues] == 0) return;
  const std::size_t before = kept.empty() ? 0 : static_cast<std::size_t>(kept[kValues]);
  const auto more = static_cast<std::size_t>(others[kValues]);
  if (kept.empty()) kept.assign(others.begin(), others.begin() + kHead);
  kept.resize(kHead + before);
  kept.insert(kept.end(), others.begin() + kHead,
              others.begin() + static_cast<std::ptrdiff_t>(kHead + more));
  kept[kValues] = static_cast<double>(before + more);
}

// A score, and whether its class or event is true.
struct Scored {
  double score;
  bool truth;
};

// From the sum of the ranks of true scores (Mann and Whitney's U); equal scores share the mean of
// their ranks. No score may be NaN, which has no rank.
double area(std::vector<Scored>& all) {
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.score < b.score; });
  double ranks = 0;
  double truths = 0;
  for (auto begin = all.begin(); begin != all.end();) {
    const auto end = std::find_if(begin, all.end(),
                                  [&](const auto& each) { return each.score != begin->score; });
    const auto first = static_cast<double>(begin - all.begin());
    const auto last = static_cast<double>(end - all.begin() - 1);
    const auto those =
        static_cast<double>(std::count_if(begin, end, [](const auto& each) { return each.truth; }));
    ranks += those * ((first + last) / 2 + 1);
    truths += those;
    begin = end;
  }
  const double others = static_cast<double>(all.size()) - truths;
  return (ranks - truths * (truths + 1) / 2) / (truths * others);
}

double mean_area(Sums kept) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (kept.size() <= kHead) return nan;
  const auto scores = static_cast<std::size_t>(kept[kScores]);
  const auto truths = static_cast<std::size_t>(kept[kTruths]);
  const bool classes = truths == 1 && scores > 1;
  double sum = 0;
  double count = 0;
  for (std::size_t label = classes && scores == 2 ? 1 : 0; label < scores; ++label) {
    std::vector<Scored> all;
    for (Sums rows = kept.subspan(kHead); !rows.empty(); rows = rows.subspan(scores + truths)) {
      if (std::isnan(rows[label])) return nan;
      const double truth = rows[scores + (classes ? 0 : label)];
      all.push_back({rows[label], classes ? truth == static_cast<double>(label) : truth != 0});
    }
    const double value = area(all);
    if (std::isnan(value)) continue;  // 0 / 0: all or none are true
    sum += value;
    ++count;
  }
  return count == 0 ? nan : sum / count;
}

// As scikit-learn's roc_auc_score with average="macro": for two classes the area of the second,
// for more the mean over each class against the rest (multi_class="ovr"), for events the mean over
// the last dimension. Classes and events that are always or never true do not count. NaN if none
// counts, or if a score that counts is NaN.
Metric auc_metric() {
  return {.name = "auc",
          .targets = {TargetKind::classes, TargetKind::events},
          .better = Better::higher,
          .sums = scores_and_truths,
          .merge = append,
          .value = mean_area};
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

// For the targets: the count of numbers, their mean, the sum of squared distances from it; and the
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
void merge_spread_and_error(std::vector<double>& sums, Sums others) {
  if (others.empty() || others[0] == 0) return;
  sums.resize(others.size());
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
      by_label("precision",
               [](double hits, double predicted, double) { return share(hits, predicted); }),
      by_label("recall", [](double hits, double, double truth) { return share(hits, truth); }),
      by_label("f1", dice),
      // Of the pixels of masks, where Dice's coefficient is the name of f1.
      of_classes(
          by_label("mean_iou", [](double hits, double predicted,
                                  double truth) { return share(hits, predicted + truth - hits); })),
      of_classes(by_label("dice", dice)),
      auc_metric(),
      {.name = "perplexity",  // exp of the loss
       .targets = {classes, none},
       .sums = loss_and_elements,
       .value = [](Sums sums) { return std::exp(ratio(sums)); }},
      {.name = "bits_per_byte",  // of models whose targets are bytes
       .targets = {classes, none},
       .sums = loss_and_elements,
       .value = [](Sums sums) { return ratio(sums) / std::numbers::ln2; }},
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

// The names of metrics that go with the target, or of all; the family's name follows accuracy.
std::vector<std::string> valid_names(std::optional<TargetKind> target) {
  std::vector<std::string> names;
  for (const Metric& each : all_metrics()) {
    if (!target || goes_with(each, *target)) names.push_back(each.name);
    const bool has_family = !target || goes_with(top(1), *target);
    if (each.name == "accuracy" && has_family) names.emplace_back(kTopFamily);
  }
  return names;
}

}  // namespace

at::Tensor in_columns(const at::Tensor& events) {
  return events.reshape({-1, events.dim() > 1 ? events.size(-1) : 1});
}

at::Tensor true_events(const EvaluatedBatch& batch) { return batch.target.to(at::kDouble).gt(0.5); }

void add_up(std::vector<double>& sums, std::span<const double> others) {
  sums.resize(std::max(sums.size(), others.size()));
  for (std::size_t i = 0; i < others.size(); ++i) sums[i] += others[i];
}

const std::vector<Metric>& all_metrics() {
  static const std::vector<Metric> metrics = make_table();
  return metrics;
}

Metric metric(std::string_view name) {
  if (const Metric* found = find_named(all_metrics(), name)) return *found;
  if (const auto count = config::number_in(kTopFamily, name)) return top(*count);
  throw UserError("unknown metric '" + std::string(name) + "'; valid: " + join(metric_names()));
}

std::vector<std::string> metric_names() { return valid_names(std::nullopt); }

std::vector<std::string> metrics_of(const Recipe& recipe) {
  const LossFunction& loss = loss_function(recipe.model.loss);
  if (!recipe.eval.metrics) {
    if (!goes_with(metric("accuracy"), loss.target)) return {};
    return {"accuracy"};
  }
  std::vector<std::string> metrics;
  for (const std::string& name : *recipe.eval.metrics) {
    if (!goes_with(metric(name), loss.target)) {
      throw UserError("eval.metrics: the loss " + std::string(loss.name) + " has no " + name +
                      "; it has " + join(valid_names(loss.target)));
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

void check_measured(const Recipe& recipe, const std::string& key, const std::string& name) {
  std::vector<std::string> measured;
  for (const Metric& each : measured_metrics(recipe)) measured.push_back(each.name);
  if (std::find(measured.begin(), measured.end(), name) != measured.end()) return;
  throw UserError(key + ": evaluations do not measure " + name + " (eval.metrics); they measure " +
                  join(measured));
}

bool keeps_highest(const CheckpointRecipe& recipe) {
  return recipe.keep_best && metric(*recipe.keep_best).better == Better::higher;
}

}  // namespace decent
