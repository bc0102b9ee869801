#pragma once
// The loss of a recipe, applied to a model's outputs and targets.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "decent/config/recipe.h"
#include "decent/core/error.h"
#include "decent/task/evaluated_batch.h"
#include "decent/task/losses.h"

namespace decent {

/// A target is none of the model's classes.
class WrongClass : public UserError {
 public:
  WrongClass(const std::string& message, std::int64_t count) : UserError(message), count_(count) {}
  std::int64_t count() const { return count_; }  // of classes in the model

 private:
  std::int64_t count_;
};

/// A scalar with gradient, and its value.
struct MeanLoss {
  at::Tensor tensor;
  double value = 0;
};

/// A loss of the table with its options: checks that outputs and targets fit together, brings them
/// to the shapes that the loss takes, and says in a user's terms what does not fit.
class Criterion {
 public:
  /// Throws UserError for an unknown loss, for weights that the loss does not take, and for options
  /// that it refuses. `own`: the options of the loss by their names.
  explicit Criterion(std::string_view loss, const ClassOptions& classes = {},
                     const Options& own = {});
  explicit Criterion(const ModelRecipe& recipe);

  const LossFunction& loss() const { return *loss_; }
  /// Whether the target is one class of several.
  bool has_classes() const { return loss_->target == TargetKind::classes; }
  /// Whether there is a target; the model's own loss has none.
  bool needs_target() const { return loss_->target != TargetKind::none; }

  /// Mean loss. Throws UserError with both shapes and dtypes if output and target do not fit
  /// together.
  ///
  ///   classes   output floating [.., C, ..] with C in dimension class_dim; target integer classes,
  ///             the same shape without C. Where all targets are ignored, or of classes whose
  ///             weight is 0, there is nothing to learn: 0, with gradient 0. Or, where the loss
  ///             takes them, probabilities floating of the output's shape, of which none is
  ///             ignored.
  ///   numbers   output floating [..], target numbers of the same shape
  ///   events    the same; targets are probabilities, 0 to 1, and may be bool
  ///   none      the model's output is the loss, one number; target is not looked at
  MeanLoss mean_loss(const at::Tensor& output, const at::Tensor& target) const;

  /// The same without reading the value, which a GPU may not have computed yet. `on_host` is the
  /// target in the host's memory. Not for weights of classes, where only the value tells whether
  /// any target counts.
  at::Tensor unread_mean_loss(const at::Tensor& output, const at::Tensor& target,
                              const at::Tensor& on_host) const;
  bool has_weights() const { return options_.weights.defined(); }

  /// The loss as a sum, with the tensors that metrics need. `samples`: the batch's number of
  /// samples, which is the number of elements if the model gives its own loss.
  EvaluatedBatch evaluate(const at::Tensor& output, const at::Tensor& target,
                          std::int64_t samples) const;

  /// LossFunction::doubt of a batch that fits.
  std::string doubt(const at::Tensor& output, const at::Tensor& target) const;
  bool may_doubt() const { return loss_->doubt != nullptr; }

  /// The number of classes that a target may have; nullopt if targets are not classes, or are
  /// probabilities of all classes.
  std::optional<std::int64_t> class_count(const at::Tensor& output, const at::Tensor& target) const;
  /// Throws WrongClass if `target`, of integers, has a class that is neither ignored nor one of
  /// `count`.
  void check_classes(const at::Tensor& target, std::int64_t count) const;
  /// Throws WrongClass if `target` has a class that `output` does not have, as mean_loss and
  /// evaluate do on the CPU. Reads the target's values, but only the output's shape.
  void check_classes(const at::Tensor& output, const at::Tensor& target) const;

 private:
  // The arguments of LossFunction::reduced.
  struct Fitted {
    at::Tensor output;
    at::Tensor target;
  };
  Fitted fit(const at::Tensor& output, const at::Tensor& target) const;
  Fitted fit_classes(const at::Tensor& output, const at::Tensor& target) const;
  Fitted fit_elements(const at::Tensor& output, const at::Tensor& target) const;
  at::Tensor fit_own_loss(const at::Tensor& output) const;
  bool are_probabilities(const at::Tensor& output, const at::Tensor& target) const;
  std::int64_t class_dim_of(const at::Tensor& output) const;
  std::int64_t fitting_class_dim(const at::Tensor& output, const at::Tensor& target) const;
  const ClassOptions& options_for(const at::Tensor& output) const;
  bool any_counts(const at::Tensor& target) const;
  at::Tensor reduced(const Fitted& fitted, std::int64_t reduction) const;
  [[noreturn]] void explain_failure(const Fitted& fitted, const std::exception& error) const;
  [[noreturn]] void refuse_mismatch(const at::Tensor& output, const at::Tensor& target,
                                    const std::string& wanted) const;

  const LossFunction* loss_;
  ReducedLoss reduced_;
  mutable ClassOptions options_;  // the weights move to the outputs' device
};

/// Batches whose loss is a number but means nothing (LossFunction::doubt): keeps the first doubt
/// about each data set.
class LossDoubts {
 public:
  void saw(const Criterion& criterion, const std::string& data, const at::Tensor& output,
           const at::Tensor& target) {
    if (!criterion.may_doubt() || found_.contains(data)) return;
    std::string doubt = criterion.doubt(output, target);
    if (!doubt.empty()) found_.emplace(data, std::move(doubt));
  }

  /// By data set, for humans.
  const std::map<std::string, std::string>& found() const { return found_; }

 private:
  std::map<std::string, std::string> found_;
};

}  // namespace decent
