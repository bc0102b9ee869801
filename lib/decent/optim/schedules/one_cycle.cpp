// torch.optim.lr_scheduler.OneCycleLR with cycle_momentum=False

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "decent/core/error.h"
#include "decent/optim/schedules/all.h"

namespace decent::schedules {
namespace {

// Reaches from the end of the previous phase to its own end, in updates that may be fractions.
struct Phase {
  double end;
  double from, to;  // learning rates
};

std::int64_t steps_of(const ScheduleOptions& o) { return o.total_steps.value_or(o.steps); }

std::vector<Phase> phases_of(const ScheduleOptions& o) {
  const double initial = o.lr / o.div_factor;
  const double lowest = initial / o.final_div_factor;
  const auto steps = static_cast<double>(steps_of(o));
  const double up = o.pct_start * steps - 1;
  if (!o.three_phase) return {{up, initial, o.lr}, {steps - 1, o.lr, lowest}};
  return {{up, initial, o.lr}, {2 * up, o.lr, initial}, {steps - 1, initial, lowest}};
}

double rate(const std::vector<Phase>& phases, bool cosine, double u) {
  double begin = 0;
  for (const Phase& phase : phases) {
    if (u > phase.end && &phase != &phases.back()) {
      begin = phase.end;
      continue;
    }
    const double share = phase.end > begin ? (u - begin) / (phase.end - begin) : 1;
    if (!cosine) return phase.from + (phase.to - phase.from) * share;
    return phase.to + (phase.from - phase.to) / 2 * (1 + std::cos(std::numbers::pi * share));
  }
  return phases.back().to;
}

Schedule make(const ScheduleOptions& o) {
  const std::int64_t steps = steps_of(o);
  const bool cosine = o.anneal_strategy == "cos";
  check(steps >= 1, "total_steps", steps, ">= 1");
  check(o.pct_start >= 0 && o.pct_start <= 1, "pct_start", o.pct_start, "from 0 to 1");
  check(o.div_factor > 0, "div_factor", o.div_factor, "> 0");
  check(o.final_div_factor > 0, "final_div_factor", o.final_div_factor, "> 0");
  if (!cosine && o.anneal_strategy != "linear")
    throw UserError("schedule: anneal_strategy is '" + o.anneal_strategy +
                    "': it must be cos or linear");
  return [phases = phases_of(o), cosine, last = steps - 1](std::int64_t t) {
    return rate(phases, cosine, static_cast<double>(std::min(t - 1, last)));
  };
}

}  // namespace

Row one_cycle() {
  return {.name = "one_cycle",
          .arguments =
              [](const ScheduleOptions& o) {
                return Options{{"total_steps", steps_of(o)},
                               {"pct_start", o.pct_start},
                               {"anneal_strategy", o.anneal_strategy},
                               {"div_factor", o.div_factor},
                               {"final_div_factor", o.final_div_factor},
                               {"three_phase", o.three_phase}};
              },
          .make = make};
}

}  // namespace decent::schedules
