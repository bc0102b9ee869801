#include "decent/train/training_batches.h"

#include <cstddef>
#include <cstdint>
#include <utility>

#include "decent/task/device.h"
#include "decent/task/random.h"

namespace decent {
namespace {

// The number of batches of the whole run; a number that overflows is never reached anyway.
std::int64_t batch_count(const Run& run) {
  std::int64_t count = 0;
  const bool too_many =
      __builtin_mul_overflow(run.plan.total_steps, run.task.recipe.train.grad_accumulation, &count);
  return too_many ? Prefetcher::kEndless : count;
}

}  // namespace

Batch read_training_batch(const Run& run, std::int64_t update, std::int64_t micro_batch) {
  return run.task.train->read(run.plan.sampler->micro_batch(update, micro_batch),
                              run.plan.sampler->position(update).epoch,
                              host_memory_for(run.task.device.device));
}

void seed_training_step(const Run& run, int rank, std::int64_t step) {
  seed_generator(static_cast<std::uint64_t>(run.task.recipe.seed), rank, step,
                 RandomStream::training, run.task.device.device);
}

std::unique_ptr<Prefetcher> training_batches(const Run& run, std::shared_ptr<Trace> trace) {
  const std::int64_t accumulation = run.task.recipe.train.grad_accumulation;
  return std::make_unique<Prefetcher>(
      [&run, trace = std::move(trace), accumulation](std::int64_t number) {
        const std::int64_t update = number / accumulation;
        const TraceSpan span(trace.get(), kDataLane, "batch of", {.step = update + 1});
        return read_training_batch(run, update, number % accumulation);
      },
      run.plan.first_step * accumulation, batch_count(run),
      static_cast<std::size_t>(run.task.recipe.data.prefetch),
      static_cast<std::size_t>(run.task.recipe.data.threads),
      thread_start_for(run.task.device.device));
}

}  // namespace decent
