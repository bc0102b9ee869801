#pragma once
// The metrics of eval.metrics: each is a row of the table in metrics.cpp. Nothing else names one,
// except for accuracy, which is the default and in the progress bar.

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

/// Adds sums of other batches to `sums`, of the same metric. Without a batch they are empty. The
/// sums of another worker may end in zeros, up to the length of the longest.
using MergeSums = std::function<void(std::vector<double>& sums, std::span<const double> others)>;

/// Adds element by element, as most sums need.
void add_up(std::vector<double>& sums, std::span<const double> others);

/// For metrics of events: a column for each event of the last dimension, or one column for all; and
/// which events of a batch are true.
at::Tensor in_columns(const at::Tensor& events);
at::Tensor true_events(const EvaluatedBatch& batch);

/// A row of the table.
struct Metric {
  std::string name;                 // as eval.metrics has it
  std::vector<TargetKind> targets;  // of the losses that it goes with
  Better better = Better::lower;    // which values checkpoint.keep_best keeps
  bool is_share = false;            // from 0 to 1, shown in percent
  /// The sums over a batch, in the order that `merge` and `value` know. No gradient is recorded
  /// while it runs.
  std::function<BatchSums(const EvaluatedBatch& batch)> sums;
  MergeSums merge = add_up;
  /// The metric's value from the sums over all batches of all workers.
  std::function<double(std::span<const double> sums)> value;
};

/// All metrics, in the order in which recipes list them; the first is the loss.
const std::vector<Metric>& all_metrics();

/// The metric `name`, which may be one of the family top<k>: top1, top2, .. Throws UserError,
/// listing all, if it is unknown.
Metric metric(std::string_view name);

/// As all_metrics(), with "top<k>" for its family.
std::vector<std::string> metric_names();

/// The metrics of eval.metrics besides the loss, which is always measured; without eval.metrics,
/// accuracy if it goes with the loss. Throws UserError for one that does not, saying which do.
std::vector<std::string> metrics_of(const Recipe& recipe);

/// The metrics of an evaluation of the recipe: the loss, then metrics_of(recipe).
std::vector<Metric> measured_metrics(const Recipe& recipe);

/// Throws UserError, beginning with `key`, if the recipe's evaluations do not measure metric
/// `name`.
void check_measured(const Recipe& recipe, const std::string& key, const std::string& name);

/// Whether checkpoint.keep_best, if given, keeps the highest value.
bool keeps_highest(const CheckpointRecipe& recipe);

}  // namespace decent
