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
};

/// The settings of a parameter by its name.
using SettingsFunction =
    std::function<ParameterSettings(const std::string& name, const at::Tensor& parameter)>;

/// What DecentralizedOptions and DistributedDataParallelOptions have in common; the first documents
/// it.
struct TrainingOptions {
  std::shared_ptr<const BucketUpdate> update;
  Schedule schedule;
  double weight_decay = 0.0;
  SettingsFunction settings = nullptr;
  double bucket_mb = 25.0;
  bool average_buffers = true;
  ClipOptions clip = {};
  UpdateTime update_time = UpdateTime::in_backward;
  std::optional<LossScalerOptions> loss_scaler = std::nullopt;
  std::optional<double> ema = std::nullopt;
  std::shared_ptr<Trace> trace = nullptr;
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

/// The part of `options` that is in TrainingOptions.
template <typename Options>
TrainingOptions training_options(const Options& options) {
  return {.update = options.update,
          .schedule = options.schedule,
          .weight_decay = options.weight_decay,
          .settings = options.settings,
          .bucket_mb = options.bucket_mb,
          .average_buffers = options.average_buffers,
          .clip = options.clip,
          .update_time = options.update_time,
          .loss_scaler = options.loss_scaler,
          .ema = options.ema,
          .trace = options.trace,
          .warn = options.warn};
}

}  // namespace decent
