#include "decent/train/training_batches.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "decent/task/device.h"

namespace decent {
namespace {

// Batches of the whole run; more than can be counted are never reached either.
std::int64_t batch_count(const Run& run) {
  std::int64_t count = 0;
  const bool too_many =
      __builtin_mul_overflow(run.plan.total_steps, run.task.recipe.train.grad_accumulation, &count);
  return too_many ? Prefetcher::kEndless : count;
}

}  // namespace

std::unique_ptr<Prefetcher> training_batches(const Run& run, std::shared_ptr<Trace> trace) {
  const std::int64_t accumulation = run.task.recipe.train.grad_accumulation;
  return std::make_unique<Prefetcher>(
      [&run, trace = std::move(trace), accumulation](std::int64_t number) {
        const std::int64_t update = number / accumulation;
        const TraceSpan span(trace.get(), kDataLane, "batch of", {.step = update + 1});
        return run.task.train->read(run.plan.sampler->micro_batch(update, number % accumulation),
                                    run.plan.sampler->position(update).epoch,
                                    host_memory_for(run.task.device.device));
      },
      run.plan.first_step * accumulation, batch_count(run),
      static_cast<std::size_t>(run.task.recipe.data.prefetch),
      static_cast<std::size_t>(run.task.recipe.data.threads),
      thread_start_for(run.task.device.device));
}

}  // namespace decent
