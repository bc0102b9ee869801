// torch.optim.lr_scheduler.LinearLR

#include <algorithm>

#include "decent/optim/schedules/all.h"

namespace decent::schedules {
namespace {

struct LinearOptions {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  std::optional<std::int64_t> total_iters = 5;  // none: all steps
};

struct Linear {
  using Options = LinearOptions;
  static constexpr std::string_view kName = "linear";
  static constexpr std::array kOptions = {
      Option<Options>{"start_factor", "Share of lr in the first update", &Options::start_factor,
                      above_up_to(0, 1)},
      Option<Options>{"end_factor", "Share of lr after total_iters updates", &Options::end_factor,
                      within(0, 1)},
      Option<Options>{"total_iters", "Updates from start_factor to end_factor; null: all updates",
                      &Options::total_iters, at_least(1)}};

  static void resolve(Options& options, const Rest& of) {
    if (!options.total_iters) options.total_iters = of.steps;
  }

  static Schedule make(const Options& options, const Rest& of) {
    return [o = options, lr = of.lr, iterations = *options.total_iters](std::int64_t t) {
      const double done =
          static_cast<double>(std::min(t - 1, iterations)) / static_cast<double>(iterations);
      return lr * (o.start_factor + (o.end_factor - o.start_factor) * done);
    };
  }
};

}  // namespace

Row linear() { return row<Linear>(); }

}  // namespace decent::schedules
