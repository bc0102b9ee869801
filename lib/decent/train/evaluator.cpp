#include "decent/train/evaluator.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <cstring>
#include <type_traits>

#include "decent/data/prefetcher.h"
#include "decent/data/sampler.h"
#include "decent/task/device.h"
#include "decent/task/metrics.h"
#include "decent/task/predict.h"
#include "decent/task/random.h"

namespace decent {
namespace {

constexpr std::size_t kMostUnread = 64;  // batches of which a GPU is not behind the host

}  // namespace

Evaluator::Evaluator(Task& task, std::shared_ptr<Communicator> world, World& workers)
    : recipe_(task.recipe),
      model_(*task.model),
      data_(*task.eval),
      inputs_(task.inputs),
      criterion_(task.criterion),
      metrics_(metrics_of(task.recipe)),
      world_(std::move(world)),
      workers_(workers) {}

Evaluation Evaluator::evaluate(std::int64_t step) {
  seed_generator(static_cast<std::uint64_t>(recipe_.seed), world_->rank(), step,
                 RandomStream::evaluation, model_.device());
  const at::NoGradGuard no_grad;
  model_.module().eval();
  workers_.control().report(Operation::evaluating);
  const EvaluationSums own = evaluate_own_part();
  model_.module().train();

  workers_.control().report(Operation::sharing_scores);
  const EvaluationSums total = add_up(own);
  return {.loss = total.loss / total.elements,
          .scores = scores_of(metrics_, total),
          .samples = data_.source->size()};
}

// Every worker's sums to everyone, added up in the order of ranks: means do not just add up.
EvaluationSums Evaluator::add_up(const EvaluationSums& own) {
  constexpr std::int64_t kColumns = sizeof(EvaluationSums) / sizeof(double);
  static_assert(std::is_trivially_copyable_v<EvaluationSums>);
  const at::Tensor table = at::zeros({world_->size(), kColumns}, at::kDouble);
  double* rows = table.mutable_data_ptr<double>();
  std::memcpy(rows + world_->rank() * kColumns, &own, sizeof own);
  world_->all_reduce_sum(table)->wait();
  EvaluationSums total;
  for (int rank = 0; rank < world_->size(); ++rank) {
    EvaluationSums part;
    std::memcpy(static_cast<void*>(&part), rows + rank * kColumns, sizeof part);
    total += part;
  }
  return total;
}

EvaluationSums Evaluator::evaluate_own_part() {
  const std::int64_t samples = data_.source->size();
  const std::int64_t batch_size = recipe_.data.eval_batch_size;
  const Membership& members = workers_.membership();
  const int rank = workers_.launch().rank;
  const std::int64_t own = evaluation_size(samples, members, rank);
  Prefetcher batches(
      [&](std::int64_t number) {
        return read_batch(
            *data_.source, data_.fields,
            evaluation_indices(samples, members, rank, number * batch_size, batch_size),
            host_memory_for(model_.device()));
      },
      0, (own + batch_size - 1) / batch_size, static_cast<std::size_t>(recipe_.data.prefetch));
  EvaluationSums sums;
  std::vector<UnreadSums> unread;
  while (!batches.done()) {
    workers_.control().progress();
    unread.push_back(evaluate(batches.next()));
    if (unread.size() < kMostUnread && !batches.done()) continue;
    for (const UnreadSums& part : unread) sums += part.read();
    unread.clear();
  }
  return sums;
}

UnreadSums Evaluator::evaluate(Batch read) {
  const HeldBatch held(std::move(read), model_.device());
  const Batch& batch = *held;
  const auto [output, target] = predict(model_, inputs_, criterion_, data_, batch);
  UnreadSums sums = criterion_.evaluate(output, target, batch.samples());
  model_.settle_buffers();
  return sums;
}

}  // namespace decent
