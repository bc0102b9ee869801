#pragma once
// How weights are updated, independent of the exchange.

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "decent/core/trace.h"
#include "decent/optim/bucket_update.h"
#include "decent/optim/schedule.h"
#include "decent/optim/whole_gradient.h"

namespace decent {

/// When buckets are updated: as soon as their gradients are complete, or all at the end of
/// backward. The results are the same bit for bit. in_backward overlaps better, but a model that
/// still needs a weight after its gradient is complete (because it also uses it through detach())
/// then fails in backward().
enum class UpdateTime { in_backward, after_backward };

/// Settings of one parameter, as those of torch's parameter groups.
struct ParameterSettings {
  double weight_decay = 0.0;
  double lr_scale = 1.0;  // times the schedule's learning rate
  bool as_matrix = true;  // if it has two dimensions; for an update of matrices (muon)
};

/// The settings of a parameter by its name.
using SettingsFunction =
    std::function<ParameterSettings(const std::string& name, const at::Tensor& parameter)>;

/// The part of DecentralizedOptions and DistributedDataParallelOptions that is about updates.
struct TrainingOptions {
  /// From make_update, or the user's own. Null, for DistributedDataParallel alone: the caller
  /// updates. Then schedule, weight_decay, settings, clip, loss_scaler and ema, which belong to the
  /// update, must not be given either.
  std::shared_ptr<const BucketUpdate> update = nullptr;
  /// The learning rate of step t = 1, 2, ..: from make_schedule, or any function.
  Schedule schedule = nullptr;
  double weight_decay = 0.0;  // of tensors with at least 2 dimensions; the others do not decay
  /// If given, it replaces weight_decay. Called once for each parameter.
  SettingsFunction settings = nullptr;
  /// In MiB. Default: 25, or 4 where gradients are averaged, so that the first bucket is sent
  /// earlier in backward.
  std::optional<double> bucket_mb = std::nullopt;
  bool average_buffers = true;  // floating-point buffers join the global average
  /// Of each worker's gradient, or of the mean gradient. With one norm over all, buckets are
  /// updated after backward.
  ClipOptions clip = {};
  UpdateTime update_time = UpdateTime::in_backward;
  /// For losses that are multiplied by loss_scale() before backward(). A step with a gradient that
  /// is not finite mixes but does not update; where gradients are averaged, no worker updates then.
  /// Buckets are updated after backward.
  std::optional<LossScalerOptions> loss_scaler = std::nullopt;
  /// The decay of an exponential moving average of the weights, in [0, 1); see use_ema() and
  /// EmaWeights. It costs a copy of the parameters and a pass over them in every step.
  std::optional<double> ema = std::nullopt;
  /// Records waits, updates and exchanges of buckets in the steps in which it is on; each exchange
  /// then has a thread that waits for its end. The caller calls its begin_step().
  std::shared_ptr<Trace> trace = nullptr;
  /// Called once for each parameter that gets no gradient (with averaged gradients: on any worker),
  /// with a message.
  std::function<void(const std::string&)> warn = [](const std::string&) {};

  /// Whether all gradients of a step must be there before its first update.
  bool needs_whole_gradient() const {
    return decent::needs_whole_gradient(clip) || decent::needs_whole_gradient(loss_scaler);
  }
  /// Whether buckets are updated while backward runs.
  bool updates_in_backward() const {
    return update_time == UpdateTime::in_backward && !needs_whole_gradient();
  }
  /// The settings of a parameter, from `settings` or weight_decay.
  ParameterSettings settings_of(const std::string& name, const at::Tensor& parameter) const;
  /// Throws UserError for options that are missing or out of range; does not check bucket_mb.
  void check() const;
};

}  // namespace decent
