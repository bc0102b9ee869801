// torch.optim.lr_scheduler.StepLR and ExponentialLR

#include <cmath>
#include <string>

#include "decent/core/error.h"
#include "decent/optim/schedules/all.h"

namespace decent::schedules {
namespace {

constexpr double kGammaOfSteps = 0.1;

template <class T>
T needed(const std::optional<T>& option, const char* name, const char* schedule) {
  if (option) return *option;
  throw UserError("schedule: " + std::string(schedule) + " needs " + name);
}

template <class T>
OptionValue value_or_null(const std::optional<T>& option) {
  return option ? OptionValue(*option) : kNull;
}

// torch takes any number, but at 0 nothing would be learned.
void check_gamma(double gamma) { check(gamma > 0 && std::isfinite(gamma), "gamma", gamma, "> 0"); }

Schedule make_step(const ScheduleOptions& o) {
  const std::int64_t size = needed(o.step_size, "step_size", "step");
  const double gamma = o.gamma.value_or(kGammaOfSteps);
  check(size >= 1, "step_size", size, ">= 1");
  check_gamma(gamma);
  return [lr = o.lr, size, gamma](std::int64_t t) {
    return lr * std::pow(gamma, static_cast<double>((t - 1) / size));
  };
}

Schedule make_exponential(const ScheduleOptions& o) {
  const double gamma = needed(o.gamma, "gamma", "exponential");
  check_gamma(gamma);
  return [lr = o.lr, gamma](std::int64_t t) {
    return lr * std::pow(gamma, static_cast<double>(t - 1));
  };
}

}  // namespace

Row step() {
  return {.name = "step",
          .arguments =
              [](const ScheduleOptions& o) {
                return Options{{"step_size", value_or_null(o.step_size)},
                               {"gamma", o.gamma.value_or(kGammaOfSteps)}};
              },
          .make = make_step};
}

Row exponential() {
  return {.name = "exponential",
          .arguments =
              [](const ScheduleOptions& o) {
                return Options{{"gamma", value_or_null(o.gamma)}};
              },
          .make = make_exponential};
}

}  // namespace decent::schedules
