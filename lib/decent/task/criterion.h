#pragma once
// Losses of model.loss, and the sums over batches that evaluation needs.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "decent/config/recipe.h"

namespace decent {

/// Sums over one batch that add up over batches and workers.
struct EvaluationSums {
  double loss = 0;      // over the elements that the loss averages over
  double elements = 0;  // how many these are
  double correct = 0;   // classification: predictions that are right
  double correct5 = 0;  // right within the five highest
  double labels = 0;    // classification: predictions that count
  // Regression, over all numbers of the targets:
  double numbers = 0;
  double squared_error = 0;
  double absolute_error = 0;
  double target_mean = 0;
  double target_squares = 0;  // of the distances from that mean

  /// Means and squares are merged as Chan, Golub and LeVeque do ("Updating formulae and a pairwise
  /// algorithm for computing sample variances", 1979), which loses no digits to large means.
  EvaluationSums& operator+=(const EvaluationSums& other);
};

/// The same where the model runs, not read yet. Reading waits for a GPU to have done all that it
/// was given, so that it is better done for several batches at once.
class UnreadSums {
 public:
  void add(double EvaluationSums::*sum, const at::Tensor& value);
  void set(double EvaluationSums::*sum, double value) { known_.*sum = value; }
  EvaluationSums read() const;

 private:
  EvaluationSums known_;
  std::vector<double EvaluationSums::*> sums_;
  std::vector<at::Tensor> values_;  // float64 scalars, of each of sums_
};

/// A scalar with gradient, and its value.
struct MeanLoss {
  at::Tensor tensor;
  double value = 0;
};

struct CriterionOptions {
  LossName loss = LossName::cross_entropy;
  double label_smoothing = 0;        // cross_entropy
  std::int64_t ignore_index = -100;  // cross_entropy, nll: targets of this class do not count
  std::int64_t class_dim = -1;       // cross_entropy, nll: of the output
};

/// PyTorch's losses of these names with their default options; `output` is a model that returns its
/// loss.
class Criterion {
 public:
  explicit Criterion(LossName loss) : options_{.loss = loss} {}
  explicit Criterion(const ModelRecipe& recipe);

  /// Whether predictions are classes, right or wrong: cross_entropy, nll, bce_with_logits.
  bool classifies() const;
  /// Whether the target is one class of several: cross_entropy, nll.
  bool has_classes() const;
  /// Whether predictions are numbers: mse, l1, huber.
  bool regresses() const;
  /// Whether there is a target; the model's own loss has none.
  bool needs_target() const { return options_.loss != LossName::output; }

  /// Mean loss. Throws UserError saying both shapes and dtypes where output
  /// and target do not fit together.
  ///
  ///   cross_entropy, nll: output [.., C, ..] with C in dimension class_dim, logits or log
  ///                       probabilities; target integer classes, the same shape without C. Where
  ///                       all targets are ignored there is nothing to learn: 0, with gradient 0.
  ///   mse, l1, huber:     output floating [..], target numbers of the same shape
  ///   bce_with_logits:    the same; targets are probabilities, 0 to 1
  ///   output:             the model's output is the loss, one number; target is not looked at
  MeanLoss mean_loss(const at::Tensor& output, const at::Tensor& target) const;

  /// The same as sums, and what the metrics need; `samples` in the batch are the elements of a loss
  /// that the model gives itself. No gradient.
  UnreadSums evaluate(const at::Tensor& output, const at::Tensor& target,
                      std::int64_t samples) const;

  /// Throws UserError where `target` has a class that `output` does not have, as mean_loss and
  /// evaluate do on the CPU. Reads the target alone, of the output only its shape.
  void check_classes(const at::Tensor& output, const at::Tensor& target) const;

 private:
  struct Flattened;
  std::int64_t fitting_class_dim(const at::Tensor& output, const at::Tensor& target) const;
  Flattened flatten_classes(const at::Tensor& output, const at::Tensor& target) const;
  at::Tensor class_loss(const Flattened& flat, std::int64_t reduction) const;
  at::Tensor number_loss(const at::Tensor& output, const at::Tensor& target,
                         std::int64_t reduction) const;
  at::Tensor reduced_loss(const at::Tensor& output, const at::Tensor& target,
                          std::int64_t reduction) const;
  void count_classes(const at::Tensor& output, const at::Tensor& target, UnreadSums& sums) const;

  CriterionOptions options_;
};

}  // namespace decent
