#include "decent/optim/plateau.h"

#include <algorithm>
#include <iterator>

#include "decent/optim/schedules/all.h"

namespace decent {

Plateau::Plateau(const PlateauOptions& options) : options_(options), state_({.start = options.lr}) {
  schedules::check(options.factor >= 0 && options.factor < 1, "factor", options.factor,
                   "from 0 to below 1");
  schedules::check(options.patience >= 0, "patience", options.patience, ">= 0");
  schedules::check(options.better.threshold >= 0, "threshold", options.better.threshold, ">= 0");
  schedules::check(options.cooldown >= 0, "cooldown", options.cooldown, ">= 0");
  schedules::check(options.min_lr >= 0, "min_lr", options.min_lr, ">= 0");
  schedules::check(options.eps >= 0, "eps", options.eps, ">= 0");
}

double Plateau::lr(std::int64_t step) const {
  const auto after = std::upper_bound(
      state_.falls.begin(), state_.falls.end(), step,
      [](std::int64_t wanted, const Fall& fall) { return wanted < fall.first_step; });
  return after == state_.falls.begin() ? state_.start : std::prev(after)->lr;
}

bool Plateau::saw(std::int64_t step, double value) {
  state_.best.saw(value, options_.better);
  if (state_.cooldown > 0) {
    --state_.cooldown;
    state_.best.without_improvement = 0;
  }
  return state_.best.without_improvement > options_.patience && fall(step);
}

bool Plateau::fall(std::int64_t step) {
  state_.cooldown = options_.cooldown;
  state_.best.without_improvement = 0;
  const double lower = std::max(state_.lr() * options_.factor, options_.min_lr);
  if (!(state_.lr() - lower > options_.eps)) return false;
  state_.falls.push_back({.first_step = step + 1, .lr = lower});
  return true;
}

void Plateau::restore(const State& state) {
  state_ = state;
  if (state.start == options_.lr) return;
  for (Fall& fall : state_.falls) fall.lr *= options_.lr / state.start;
  state_.start = options_.lr;
}

}  // namespace decent
