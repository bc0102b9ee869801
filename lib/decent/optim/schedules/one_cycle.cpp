// torch.optim.lr_scheduler.OneCycleLR with cycle_momentum=False

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "decent/optim/schedules/all.h"

namespace decent::schedules {
namespace {

// Reaches from the end of the previous phase to its own end, in updates that may be fractions.
struct Phase {
  double end;
  double from, to;  // learning rates
};

struct OneCycleOptions {
  std::optional<std::int64_t> total_steps;  // none: all steps
  double pct_start = 0.3;
  std::string anneal_strategy = "cos";  // or "linear"
  double div_factor = 25;
  double final_div_factor = 1e4;
  bool three_phase = false;
};

std::vector<Phase> phases_of(const OneCycleOptions& o, double lr) {
  const double initial = lr / o.div_factor;
  const double lowest = initial / o.final_div_factor;
  const auto steps = static_cast<double>(*o.total_steps);
  const double up = o.pct_start * steps - 1;
  if (!o.three_phase) return {{up, initial, lr}, {steps - 1, lr, lowest}};
  return {{up, initial, lr}, {2 * up, lr, initial}, {steps - 1, initial, lowest}};
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

struct OneCycle {
  using Options = OneCycleOptions;
  static constexpr std::string_view kName = "one_cycle";
  static constexpr std::array kOptions = {
      Option<Options>{"total_steps", "Updates of the cycle; null: all updates",
                      &Options::total_steps, at_least(1)},
      Option<Options>{"pct_start", "Share of the cycle in which the learning rate rises",
                      &Options::pct_start, within(0, 1)},
      Option<Options>{.name = "anneal_strategy",
                      .meaning = "Curve from one learning rate to the next: a cosine or a line",
                      .member = &Options::anneal_strategy,
                      .texts = {"cos", "linear"}},
      Option<Options>{"div_factor", "The first learning rate is lr divided by this number",
                      &Options::div_factor, above(0)},
      Option<Options>{"final_div_factor",
                      "The last learning rate is the first one divided by this number",
                      &Options::final_div_factor, above(0)},
      Option<Options>{"three_phase",
                      "Fall back to the first learning rate in as many updates as the rise took, "
                      "then fall further",
                      &Options::three_phase}};

  static void resolve(Options& options, const Rest& of) {
    if (!options.total_steps) options.total_steps = of.steps;
  }

  static Schedule make(const Options& o, const Rest& of) {
    const bool cosine = o.anneal_strategy == "cos";
    return [phases = phases_of(o, of.lr), cosine, last = *o.total_steps - 1](std::int64_t t) {
      return rate(phases, cosine, static_cast<double>(std::min(t - 1, last)));
    };
  }
};

}  // namespace

Row one_cycle() { return row<OneCycle>(); }

}  // namespace decent::schedules
