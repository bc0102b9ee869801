// The linear warm-up before every schedule: torch's SequentialLR of LinearLR and the schedule.

#include <algorithm>
#include <cmath>

#include "decent/core/error.h"
#include "decent/optim/schedules/all.h"

namespace decent::schedules {
namespace {

constexpr std::array kOptions = {
    Option<WarmUp>{"warmup_steps",
                   "Updates over which the learning rate rises to lr before the schedule begins",
                   &WarmUp::warmup_steps, at_least(0)},
    Option<WarmUp>{"warmup_epochs", "The same in epochs, in place of warmup_steps",
                   &WarmUp::warmup_epochs, at_least(0)},
    Option<WarmUp>{"warmup_decay", "Share of lr at which the warm-up starts", &WarmUp::warmup_decay,
                   within(0, 1)}};

// Beyond this, a double does not count every step.
constexpr double kMostSteps = 1LL << 53;

std::int64_t steps_of(double epochs, std::int64_t steps_per_epoch) {
  if (steps_per_epoch < 1)
    throw UserError(std::string(kAbout) + "warmup_epochs needs the number of steps in an epoch");
  const double steps = std::round(epochs * static_cast<double>(steps_per_epoch));
  return static_cast<std::int64_t>(std::min(steps, kMostSteps));
}

}  // namespace

std::vector<OptionKey> warm_up_keys() { return keys_of(kOptions); }

WarmUp warm_up_of(const ScheduleOptions& of) {
  auto warm_up = options_from(of.options, kOptions, kAbout);
  if (!warm_up.warmup_epochs) return warm_up;
  if (warm_up.warmup_steps != 0)
    throw UserError(std::string(kAbout) + "warmup_steps and warmup_epochs exclude each other");
  warm_up.warmup_steps = steps_of(*warm_up.warmup_epochs, of.steps_per_epoch);
  warm_up.warmup_epochs.reset();
  return warm_up;
}

Options values_of(const WarmUp& warm_up) {
  return {{"warmup_steps", warm_up.warmup_steps}, {"warmup_decay", warm_up.warmup_decay}};
}

Rest rest_after(const WarmUp& warm_up, const ScheduleOptions& of) {
  Rest rest{of, warm_up.warmup_steps};
  rest.steps = std::max<std::int64_t>(1, of.steps - warm_up.warmup_steps);
  return rest;
}

Schedule warmed_up(const WarmUp& warm_up, double lr, Schedule rest, bool in_place) {
  if (warm_up.warmup_steps == 0) return rest;
  return [steps = warm_up.warmup_steps, start = warm_up.warmup_decay, lr, rest = std::move(rest),
          in_place](std::int64_t t) {
    const std::int64_t u = t - 1;
    if (u >= steps) return rest(in_place ? t : t - steps);
    const double progress = static_cast<double>(u) / static_cast<double>(steps);
    return (in_place ? rest(t) : lr) * (start + (1 - start) * progress);
  };
}

}  // namespace decent::schedules
