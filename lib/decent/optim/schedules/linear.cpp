// torch.optim.lr_scheduler.LinearLR

#include <algorithm>

#include "decent/optim/schedules/all.h"

namespace decent::schedules {
namespace {

std::int64_t iterations_of(const ScheduleOptions& o) { return o.total_iters.value_or(o.steps); }

Schedule make(const ScheduleOptions& options) {
  const std::int64_t iterations = iterations_of(options);
  check(options.start_factor > 0 && options.start_factor <= 1, "start_factor", options.start_factor,
        "above 0 and at most 1");
  check(options.end_factor >= 0 && options.end_factor <= 1, "end_factor", options.end_factor,
        "from 0 to 1");
  check(iterations >= 1, "total_iters", iterations, ">= 1");
  return [o = options, iterations](std::int64_t t) {
    const double done =
        static_cast<double>(std::min(t - 1, iterations)) / static_cast<double>(iterations);
    return o.lr * (o.start_factor + (o.end_factor - o.start_factor) * done);
  };
}

}  // namespace

Row linear() {
  return {.name = "linear",
          .arguments =
              [](const ScheduleOptions& o) {
                return Options{{"start_factor", o.start_factor},
                               {"end_factor", o.end_factor},
                               {"total_iters", iterations_of(o)}};
              },
          .make = make};
}

}  // namespace decent::schedules
