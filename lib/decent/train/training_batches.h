#pragma once
// The batches of a run in their order, read ahead of its steps.

#include <memory>

#include "decent/core/trace.h"
#include "decent/data/prefetcher.h"
#include "decent/train/run.h"

namespace decent {

/// `run` must outlive what it returns; `trace` may be null.
std::unique_ptr<Prefetcher> training_batches(const Run& run, std::shared_ptr<Trace> trace);

}  // namespace decent
