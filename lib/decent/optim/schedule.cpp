#include "decent/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace decent {

Schedule cosine_warmup(const CosineWarmup& options) {
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

Schedule constant_lr(double lr) {
  return [lr](std::int64_t) { return lr; };
}

}  // namespace decent
