#pragma once
// A batch of an evaluation, as metrics see it.

#include <ATen/core/Tensor.h>

#include <variant>
#include <vector>

#include "decent/task/losses.h"

namespace decent {

/// Sums over a batch that add up over batches: numbers that the host knows, or tensors of any shape
/// on the model's device. Reading these waits for all work of a GPU, so read those of several
/// batches at once; see EvaluationSums.
using BatchSums = std::vector<std::variant<double, at::Tensor>>;

/// The results of a batch, without gradient. If targets are probabilities, `target` is the most
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
  std::variant<double, at::Tensor> loss_weight;  // divisor of the loss
  std::variant<double, at::Tensor> elements;     // how many targets count
};

}  // namespace decent
