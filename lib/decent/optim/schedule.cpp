#include "decent/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "decent/core/error.h"

namespace decent {
namespace {

void check(bool valid, const char* name, std::int64_t value, const char* range) {
  if (valid) return;
  throw UserError("schedule: " + std::string(name) + " is " + std::to_string(value) +
                  ": it must be " + range);
}

}  // namespace

Schedule cosine_warmup(const CosineWarmup& options) {
  check(options.warmup_steps >= 0, "warmup_steps", options.warmup_steps, ">= 0");
  check(options.t_max >= 1, "t_max", options.t_max, ">= 1");
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

Schedule make_schedule(std::string_view name, const CosineWarmup& options) {
  if (name == "constant") return constant_lr(options.lr);
  if (name == "cosine_warmup") return cosine_warmup(options);
  throw UserError("unknown schedule '" + std::string(name) + "'; valid: constant, cosine_warmup");
}

}  // namespace decent
