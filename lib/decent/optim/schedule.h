#pragma once
// Learning rates as pure functions of the step t = 1, 2, .. A schedule is a file in schedules/ and
// a row in schedules/all.h.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/options.h"

namespace decent {

class Plateau;

/// The learning rate of step t >= 1.
using Schedule = std::function<double(std::int64_t t)>;

struct CosineWarmup {
  double lr = 1e-3;  // at the peak, reached after the warm-up
  std::int64_t warmup_steps = 0;
  std::optional<std::int64_t> t_max = {};  // steps from the peak down to eta_min; none: 1
  double eta_min = 1e-6;
  double warmup_decay = 0.01;  // the first step's fraction of lr
};

/// Linear warm-up, then half a cosine down to eta_min, then eta_min. With u = t - 1 and
/// d = warmup_decay:
///
///     lr(t) = lr * (d + (1-d) * u / warmup_steps)                         if u < warmup_steps
///           = eta_min + (lr - eta_min) * (1 + cos(pi * v / t_max)) / 2    otherwise,
///             with v = min(u - warmup_steps, t_max)
///
/// Up to the end of the cosine this equals torch's SequentialLR of LinearLR and CosineAnnealingLR;
/// after it, torch's would rise again. Throws UserError for options that are out of range.
Schedule cosine_warmup(const CosineWarmup& options);

/// One schedule of a chain.
struct ScheduleLink {
  std::string name;                        // any but chain, and none that follows evaluations
  std::optional<std::int64_t> steps = {};  // until the next one begins; none, of the last: all
  double lr_scale = 1;                     // factor of the chain's lr
  Options options = {};                    // its own, as those of ScheduleOptions
  bool operator==(const ScheduleLink&) const = default;
};

/// The same learning rate in every step.
Schedule constant_lr(double lr);

/// What make_schedule() makes a schedule from.
struct ScheduleOptions {
  double lr = 1e-3;                  // the peak, or the rate before it falls
  std::int64_t steps = 1;            // of the training
  std::int64_t steps_per_epoch = 0;  // 0: unknown; warmup_epochs requires it
  /// The schedule's own options by their names, which are those of torch.optim.lr_scheduler:
  /// {{"step_size", 1000}, {"gamma", 0.5}}. Options that are not given have their defaults; those
  /// that only other schedules take are not looked at. A schedule's file in schedules/ has them.
  Options options = {};
  /// chain, which requires it: its schedules, one after another.
  std::vector<ScheduleLink> chain = {};
  /// plateau, which requires it: the object that follows the evaluations.
  std::shared_ptr<const Plateau> plateau = nullptr;
};

/// Makes a schedule by its name. With u = t - 1 and d = warmup_decay, every schedule begins with
/// lr * (d + (1-d) * u / warmup_steps) while u < warmup_steps (none by default). After that it is,
/// with u counted from the end of the warm-up:
///
///   constant       lr
///   cosine_warmup  eta_min + (lr - eta_min) * (1 + cos(pi * min(u, t_max) / t_max)) / 2
///   linear         lr * (start_factor + (end_factor - start_factor) * min(u / total_iters, 1))
///   step           lr * gamma^floor(u / step_size)
///   exponential    lr * gamma^u
///   inverse_sqrt   lr * sqrt(timescale / (timescale + u)), where timescale is warmup_steps, or
///                  10000 without a warm-up, if it is not given: transformers'
///                  get_inverse_sqrt_schedule
///   warmup_stable_decay
///                  lr, and in the last decay_steps a fall to eta_min along decay_type: linear,
///                  cosine or 1-sqrt (transformers' get_wsd_schedule)
///   one_cycle      torch's OneCycleLR with max_lr = lr: from lr / div_factor up to lr, which it
///                  reaches after pct_start of total_steps, and down to
///                  lr / (div_factor * final_div_factor); with three_phase down to the first one in
///                  as many steps again, then further. It leaves momentum as it is.
///   plateau        that of `plateau`, which falls when evaluations get no better: it knows the
///                  learning rates of all steps until now, and those to come only up to the next
///                  evaluation. Its first steps are multiplied by the warm-up's share of lr.
///   chain          the schedules of `chain` one after another, each from its own beginning
///
/// They are torch's LinearLR, StepLR, ExponentialLR and OneCycleLR, stepped after each update, and
/// ReduceLROnPlateau; the warm-up and the chain are its SequentialLR. The value of OneCycleLR stays
/// after total_steps, where torch raises an error. Throws UserError for another name, for an option
/// that no schedule has, and for options that are missing, of another type or out of range.
Schedule make_schedule(std::string_view name, const ScheduleOptions& options);

/// constant, cosine_warmup, ..: all that make_schedule knows, with the options that they take.
const std::vector<NamedOptions>& schedule_table();

/// The options that make_schedule would use for that schedule, with their values, including those
/// that follow from the number of steps. Throws as make_schedule does.
Options schedule_arguments(std::string_view name, const ScheduleOptions& options);

/// Whether the schedule depends on evaluations. Throws UserError for an unknown name.
bool schedule_follows_evaluations(std::string_view name);

/// Whether the schedule may be one of a chain. Throws UserError for an unknown name.
bool schedule_fits_into_chain(std::string_view name);

}  // namespace decent
