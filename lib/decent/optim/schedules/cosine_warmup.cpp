#include <algorithm>
#include <cmath>
#include <numbers>

#include "decent/optim/schedules/all.h"

namespace decent {
namespace {

CosineWarmup options_of(const ScheduleOptions& o) {
  const std::int64_t after_warmup = std::max<std::int64_t>(1, o.steps - o.warmup_steps);
  return {.lr = o.lr,
          .warmup_steps = o.warmup_steps,
          .t_max = o.t_max.value_or(after_warmup),
          .eta_min = o.eta_min,
          .warmup_decay = o.warmup_decay};
}

}  // namespace

Schedule cosine_warmup(const CosineWarmup& options) {
  schedules::check(options.warmup_steps >= 0, "warmup_steps", options.warmup_steps, ">= 0");
  schedules::check(options.t_max >= 1, "t_max", options.t_max, ">= 1");
  return [o = options](std::int64_t t) {
    const std::int64_t u = t - 1;
    if (u < o.warmup_steps) {
      const double progress = static_cast<double>(u) / static_cast<double>(o.warmup_steps);
      return o.lr * (o.warmup_decay + (1 - o.warmup_decay) * progress);
    }
    const double after = static_cast<double>(std::min(u - o.warmup_steps, o.t_max));
    const double angle = std::numbers::pi * after / static_cast<double>(o.t_max);
    return o.eta_min + (o.lr - o.eta_min) * (1 + std::cos(angle)) / 2;
  };
}

schedules::Row schedules::cosine_warmup() {
  return {.name = "cosine_warmup",
          .arguments =
              [](const ScheduleOptions& options) {
                const CosineWarmup o = options_of(options);
                return Options{{"warmup_steps", o.warmup_steps},
                               {"t_max", o.t_max},
                               {"eta_min", o.eta_min},
                               {"warmup_decay", o.warmup_decay}};
              },
          .make =
              [](const ScheduleOptions& options) {
                return decent::cosine_warmup(options_of(options));
              }};
}

}  // namespace decent
