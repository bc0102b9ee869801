#include <algorithm>
#include <cmath>
#include <numbers>

#include "decent/optim/schedules/all.h"

namespace decent {
namespace {

struct CosineWarmupRow {
  using Options = CosineWarmup;
  static constexpr std::string_view kName = "cosine_warmup";
  static constexpr std::array kOptions = {
      Option<Options>{"warmup_steps", "Updates over which the learning rate rises to its peak",
                      &Options::warmup_steps, at_least(0)},
      Option<Options>{
          "t_max",
          "Updates over which the learning rate falls; null: all updates after the warm-up",
          &Options::t_max, at_least(1)},
      Option<Options>{"eta_min", "Learning rate at the end of the fall", &Options::eta_min,
                      at_least(0)},
      Option<Options>{"warmup_decay", "Share of the peak learning rate at which the warm-up starts",
                      &Options::warmup_decay, within(0, 1)}};

  static void resolve(Options& options, const ScheduleOptions& of) {
    options.lr = of.lr;
    if (!options.t_max) options.t_max = std::max<std::int64_t>(1, of.steps - options.warmup_steps);
  }

  static Schedule make(const Options& options, const ScheduleOptions&) {
    return cosine_warmup(options);
  }
};

}  // namespace

Schedule cosine_warmup(const CosineWarmup& options) {
  check_options(options, CosineWarmupRow::kOptions, schedules::kAbout);
  return [o = options, t_max = options.t_max.value_or(1)](std::int64_t t) {
    const std::int64_t u = t - 1;
    if (u < o.warmup_steps) {
      const double progress = static_cast<double>(u) / static_cast<double>(o.warmup_steps);
      return o.lr * (o.warmup_decay + (1 - o.warmup_decay) * progress);
    }
    const double after = static_cast<double>(std::min(u - o.warmup_steps, t_max));
    const double angle = std::numbers::pi * after / static_cast<double>(t_max);
    return o.eta_min + (o.lr - o.eta_min) * (1 + std::cos(angle)) / 2;
  };
}

schedules::Row schedules::cosine_warmup() { return row<CosineWarmupRow>(); }

}  // namespace decent
