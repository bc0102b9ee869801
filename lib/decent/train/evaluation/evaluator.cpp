#include "decent/train/evaluation/evaluator.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "decent/comm/gather.h"
#include "decent/comm/lost_workers.h"
#include "decent/core/error.h"
#include "decent/data/prefetcher.h"
#include "decent/data/sampler.h"
#include "decent/task/device.h"
#include "decent/task/passes.h"
#include "decent/task/random.h"
#include "decent/task/state_before.h"
#include "decent/task/target_check.h"

namespace decent {

namespace {

/// Calls a function when a scope ends, also by an exception.
class AtEnd {
 public:
  explicit AtEnd(std::function<void()> function) : function_(std::move(function)) {}
  ~AtEnd() { function_(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  std::function<void()> function_;
};

// With more classes than this (a vocabulary, for instance) there is no matrix.
constexpr std::int64_t kMostClassesOfMatrix = 1000;

BatchSums counts_of_pairs(const EvaluatedBatch& batch) {
  const std::int64_t classes = batch.output.size(-1);
  if (classes > kMostClassesOfMatrix) return {};
  const at::Tensor pairs = batch.target * classes + batch.output.argmax(-1);
  return {pairs.masked_select(batch.counts).bincount({}, classes * classes)};
}

// How often the model takes one class for another. Its sums are the matrix: for each true class how
// often each was predicted, row-major; no sums for too many classes. Its value means nothing.
// Recipes cannot name it.
Metric confusion_metric() {
  return {.name = "confusion matrix",
          .targets = {TargetKind::classes},
          .sums = counts_of_pairs,
          .value = [](std::span<const double>) { return 0.0; }};
}

std::vector<Metric> metrics_of_detail(const Recipe& recipe, bool confusion) {
  std::vector<Metric> metrics = measured_metrics(recipe);
  if (confusion) metrics.push_back(confusion_metric());
  return metrics;
}

}  // namespace

Evaluator::Evaluator(Task& task, Team team, EvaluationDetail detail)
    : task_(task),
      recipe_(task.recipe),
      model_(*task.model),
      data_(*task.eval),
      inputs_(task.inputs),
      criterion_(task.criterion),
      has_confusion_(detail == EvaluationDetail::confusion),
      metrics_(metrics_of_detail(task.recipe, has_confusion_)),
      target_scalings_(
          normalizations_of(task.recipe.data.transforms_of_evaluation(), task.recipe.model.target)),
      team_(std::move(team)) {}

std::optional<Evaluation> Evaluator::evaluate(std::int64_t step) {
  step_ = step;
  seed_generator(static_cast<std::uint64_t>(recipe_.seed), team_.rank(), step,
                 RandomStream::evaluation, model_.device());
  const at::NoGradGuard no_grad;
  model_.eval();
  EvaluationSums sums(metrics_);
  if (!evaluate_parts(sums)) return std::nullopt;
  sums.add_up_over(*team_.communicator());
  const std::vector<Score> scores = scores_of_speaker(sums);
  const auto end = has_confusion_ ? scores.end() - 1 : scores.end();
  return Evaluation{
      .loss = scores.front().value,
      .scores = {scores.begin() + 1, end},
      .samples = count_of_all(),
      .confusion = has_confusion_ ? sums.sums_of(metrics_.size() - 1) : std::vector<double>()};
}

// Returns whether all workers evaluated their parts to the end.
bool Evaluator::evaluate_parts(EvaluationSums& sums) {
  Control& control = team_.control();
  const StateBefore before(model_);
  const auto train_again = [&] {
    model_.train();
    before.restore();
  };
  std::vector<Attempt<bool>> parts;
  try {
    parts = team_.attempt("evaluation", [&] {
      control.report(Operation::evaluating);
      const MergedAdapters merged(model_.adapters());
      const AtEnd shares([&] { control.report(Operation::sharing_scores); });
      return evaluate_own_part(sums);
    });
  } catch (const GivenUp&) {
    train_again();
    throw;
  }
  train_again();
  throw_if_failed(outcomes_of(parts));
  return std::ranges::all_of(parts, [](const auto& part) { return part.value.value(); });
}

// The sums are the same everywhere, but exp and log may differ between types of machines, and
// workers with different scores would not stop after the same step.
std::vector<Score> Evaluator::scores_of_speaker(EvaluationSums& sums) {
  std::vector<Score> scores = sums.scores();
  const at::Tensor values = at::empty({std::ssize(scores)}, at::kDouble);
  double* value = values.mutable_data_ptr<double>();
  for (std::size_t i = 0; i < scores.size(); ++i) value[i] = scores[i].value;
  team_.communicator()->broadcast(values, Team::kSpeaker)->wait();
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i].value = value[i];
  return scores;
}

std::int64_t Evaluator::count_of_all() {
  if (!data_.left_out) return data_.size();
  const at::Tensor count = at::full({1}, evaluated_, at::kLong);
  team_.communicator()->all_reduce_sum(count)->wait();
  const auto all = count.item<std::int64_t>();
  if (all == 0)
    throw SharedError(ExitCode::user_error, data_.key + ": none of its samples can be read");
  return all;
}

// Returns whether it came to the end before anybody asked to stop.
bool Evaluator::evaluate_own_part(EvaluationSums& sums) {
  evaluated_ = 0;
  const std::int64_t samples = data_.size();
  const std::int64_t batch_size = recipe_.data.eval_batch_size;
  const Member member = team_.member();
  const std::int64_t own = evaluation_size(samples, member);
  const auto samples_of = [&](std::int64_t number) {
    return evaluation_indices(samples, member, number * batch_size, batch_size);
  };
  Prefetcher read_ahead(
      [&](std::int64_t number) {
        return data_.read(samples_of(number), /*epoch=*/0, host_memory_for(model_.device()));
      },
      0, (own + batch_size - 1) / batch_size, static_cast<std::size_t>(recipe_.data.prefetch),
      static_cast<std::size_t>(recipe_.data.threads), thread_start_for(model_.device()));
  DeviceBatches batches(read_ahead, model_.device());
  for (std::int64_t number = 0; !batches.done(); ++number) {
    if (team_.control().stop_asked()) return false;
    team_.control().progress();
    const auto batch = batches.next();
    if (batch->read().empty()) continue;
    evaluated_ += batch->read().samples();
    try {
      evaluate(*batch, sums);
    } catch (const UserError& error) {
      throw_for_batch(task_, data_, samples_of(number), batch->read(), error, step_);
    }
  }
  sums.read();
  return true;
}

void Evaluator::evaluate(const DeviceBatch& batch, EvaluationSums& sums) {
  const auto [output, target] = predict(model_, inputs_, criterion_, data_, batch);
  task_.doubts.saw(criterion_, data_.key, output, target);
  EvaluatedBatch evaluated = criterion_.evaluate(output, target, batch.read().samples());
  if (evaluated.kind == TargetKind::numbers && !target_scalings_.empty()) {
    evaluated.output = in_original_units(evaluated.output, target_scalings_);
    evaluated.target = in_original_units(evaluated.target, target_scalings_);
  }
  sums.add(evaluated);
  model_.settle_buffers();
}

}  // namespace decent
