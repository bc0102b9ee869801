#include <algorithm>
#include <cmath>
#include <numbers>

#include "decent/optim/schedules/all.h"

namespace decent {
namespace {

struct CosineOptions {
  std::optional<std::int64_t> t_max;  // none: all steps
  double eta_min = CosineWarmup().eta_min;
};

struct Cosine {
  using Options = CosineOptions;
  static constexpr std::string_view kName = "cosine_warmup";
  static constexpr std::array kOptions = {
      Option<Options>{
          "t_max",
          "Updates over which the learning rate falls; null: all updates after the warm-up",
          &Options::t_max, at_least(1)},
      Option<Options>{"eta_min", "Learning rate at the end of the fall", &Options::eta_min,
                      at_least(0)}};

  static void resolve(Options& options, const schedules::Rest& of) {
    if (!options.t_max) options.t_max = of.steps;
  }

  static Schedule make(const Options& options, const schedules::Rest& of) {
    return [o = options, lr = of.lr, t_max = *options.t_max](std::int64_t t) {
      const double after = static_cast<double>(std::min(t - 1, t_max));
      const double angle = std::numbers::pi * after / static_cast<double>(t_max);
      return o.eta_min + (lr - o.eta_min) * (1 + std::cos(angle)) / 2;
    };
  }
};

}  // namespace

Schedule cosine_warmup(const CosineWarmup& options) {
  return make_schedule("cosine_warmup", {.lr = options.lr,
                                         .options = {{"warmup_steps", options.warmup_steps},
                                                     {"warmup_decay", options.warmup_decay},
                                                     {"t_max", options.t_max.value_or(1)},
                                                     {"eta_min", options.eta_min}}});
}

schedules::Row schedules::cosine_warmup() { return row<Cosine>(); }

}  // namespace decent
