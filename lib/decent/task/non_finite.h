#pragma once
// Where a loss that is not finite comes from, and what to do.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>

#include "decent/data/batch.h"
#include "decent/task/task.h"

namespace decent {

/// One batch of training data, through the model.
struct TrainedBatch {
  std::int64_t step = 1;                  // the update that it is for
  std::span<const std::int64_t> samples;  // their numbers in the source
  const Batch& read;
  const at::Tensor& output;
  double loss = 0;
};

/// "training diverged: the loss of step 4 is nan; ", then the first of these that is not finite: a
/// parameter (in order of registration), a field of the batch (with its first such sample), the
/// model's output, or the loss itself; and a second line with advice.
std::string divergence_text(const Task& task, const TrainedBatch& batch);

}  // namespace decent
