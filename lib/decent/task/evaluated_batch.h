#pragma once
// A batch of an evaluation, as metrics see it.

#include <ATen/core/Tensor.h>

#include <variant>
#include <vector>

#include "decent/task/losses.h"

namespace decent {

/// Sums over a batch that add up over batches: what the host knows by itself, or a tensor of any
/// shape where the model runs. Reading waits for a GPU to have done all that it was given, so that
/// it is better done for several batches at once: see EvaluationSums.
using BatchSums = std::vector<std::variant<double, at::Tensor>>;

/// What came of a batch. No gradient. Of targets that are probabilities, `target` is the most
/// probable class, the first of equals.
///
///            classes                       events, numbers                none
///   output   scores floating [n, C]        floating, any shape            the loss
///   target   int64 [n]                     any real type, the same shape  undefined
///   counts   bool [n], where not ignored   undefined                      undefined
struct EvaluatedBatch {
  TargetKind kind = TargetKind::none;
  at::Tensor output;
  at::Tensor target;
  at::Tensor counts;
  at::Tensor loss;                               // float64 [], a sum
  std::variant<double, at::Tensor> loss_weight;  // what the loss is to be divided by
  std::variant<double, at::Tensor> elements;     // how many targets count
};

}  // namespace decent
