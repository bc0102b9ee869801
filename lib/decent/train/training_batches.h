#pragma once
// The inputs of training steps: batches, read ahead in order, and random numbers.

#include <cstdint>
#include <memory>

#include "decent/core/trace.h"
#include "decent/data/prefetcher.h"
#include "decent/train/run.h"

namespace decent {

/// The batch of micro-batch `micro_batch` of update `update`, both counted from 0, in host memory
/// that suits the run's device. Any thread.
Batch read_training_batch(const Run& run, std::int64_t update, std::int64_t micro_batch);

/// Seeds the random generators for step `step`, counted from 1, of worker `rank`.
void seed_training_step(const Run& run, int rank, std::int64_t step);

/// Reads the run's batches ahead. `run` must outlive the result; `trace` may be null.
std::unique_ptr<Prefetcher> training_batches(const Run& run, std::shared_ptr<Trace> trace);

}  // namespace decent
