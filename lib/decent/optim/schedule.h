#pragma once
// Learning rates as pure functions of the step t = 1, 2, ..

#include <cstdint>
#include <functional>
#include <string_view>

namespace decent {

/// The learning rate of step t >= 1.
using Schedule = std::function<double(std::int64_t t)>;

struct CosineWarmup {
  double lr = 1e-3;  // at the peak, reached after the warm-up
  std::int64_t warmup_steps = 0;
  std::int64_t t_max = 1;  // steps from the peak down to eta_min, >= 1
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
/// Up to the end of the cosine this is torch's SequentialLR of LinearLR and CosineAnnealingLR; then
/// torch's would rise again. Throws UserError if the options are out of range.
Schedule cosine_warmup(const CosineWarmup& options);

/// The same learning rate in every step.
Schedule constant_lr(double lr);

/// Makes `constant` (which only uses `lr`) or `cosine_warmup`. Throws UserError for another name.
Schedule make_schedule(std::string_view name, const CosineWarmup& options);

}  // namespace decent
