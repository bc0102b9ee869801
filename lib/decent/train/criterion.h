#pragma once
// Losses and metrics of model.loss.

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "decent/config/recipe.h"

namespace decent {

/// Sums over one batch that add up over batches and workers.
struct EvaluationSums {
  double loss = 0;      // over the elements that the loss averages over
  double elements = 0;  // how many these are
  double correct = 0;   // classification: predictions that are right
  double labels = 0;    // classification: predictions that count

  EvaluationSums& operator+=(const EvaluationSums& other);
};

class Criterion {
 public:
  explicit Criterion(LossName loss) : loss_(loss) {}

  /// Whether there is an accuracy.
  bool classifies() const { return loss_ == LossName::cross_entropy; }

  /// Mean loss, a scalar with gradient. `output`: for cross_entropy logits [.., C] and `target`
  /// integer classes [..]; for mse floating [..] and numbers [..] of the same shape. Throws
  /// UserError saying both shapes and dtypes where they do not fit together.
  at::Tensor mean_loss(const at::Tensor& output, const at::Tensor& target) const;

  /// The same as sums, and what the metrics need. No gradient.
  EvaluationSums evaluate(const at::Tensor& output, const at::Tensor& target) const;

 private:
  at::Tensor reduced_loss(const at::Tensor& output, const at::Tensor& target,
                          std::int64_t reduction) const;

  LossName loss_;
};

}  // namespace decent
