#pragma once
// The metrics of eval.metrics: each is a row of the table in metrics.cpp. Nothing else names one
// but accuracy, which is the default and what the progress bar shows.

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/config/recipe.h"
#include "decent/task/evaluated_batch.h"
#include "decent/task/losses.h"

namespace decent {

enum class Better { higher, lower };

/// Adds sums of other batches to `sums`, of the same metric. Those of no batch are empty; of
/// another worker zeros may stand behind them, as many as the longest of a worker has.
using MergeSums = std::function<void(std::vector<double>& sums, std::span<const double> others)>;

/// Element by element: what most sums need.
void add_up(std::vector<double>& sums, std::span<const double> others);

/// What metrics of events look at: a column for each event of the last dimension, or one for all;
/// and which of a batch's are true.
at::Tensor in_columns(const at::Tensor& events);
at::Tensor true_events(const EvaluatedBatch& batch);

/// A row of the table.
struct Metric {
  std::string name;                 // as eval.metrics has it
  std::vector<TargetKind> targets;  // of the losses that it goes with
  Better better = Better::lower;    // what checkpoint.keep_best keeps
  bool is_share = false;            // from 0 to 1, shown in percent
  /// What it needs of a batch, in the order that `merge` and `value` know. No gradient is recorded
  /// while it runs.
  std::function<BatchSums(const EvaluatedBatch& batch)> sums;
  MergeSums merge = add_up;
  /// From the sums over all batches of all workers.
  std::function<double(std::span<const double> sums)> value;
};

/// All of them, in the order in which recipes list them; the first is the loss.
const std::vector<Metric>& all_metrics();

/// The one of that name, or of the family top<k>: top1, top2, .. Throws UserError for an unknown
/// one, listing all.
Metric metric(std::string_view name);

/// As all_metrics(), with "top<k>" for its family.
std::vector<std::string> metric_names();

/// The metrics of eval.metrics besides the loss, which is always measured; without eval.metrics
/// accuracy where it goes with the loss. Throws UserError for one that does not, saying which do.
std::vector<std::string> metrics_of(const Recipe& recipe);

/// What an evaluation of the recipe measures: the loss, then metrics_of(recipe).
std::vector<Metric> measured_metrics(const Recipe& recipe);

/// Throws UserError, beginning with `key`, where the recipe's evaluations do not measure the metric
/// `name`.
void check_measured(const Recipe& recipe, const std::string& key, const std::string& name);

/// Whether checkpoint.keep_best, where there is one, keeps the highest value.
bool keeps_highest(const CheckpointRecipe& recipe);

}  // namespace decent
