// The warmup-stable-decay schedule of MiniCPM (arXiv 2404.06395): get_wsd_schedule of transformers

#include <algorithm>
#include <cmath>
#include <numbers>

#include "decent/optim/schedules/all.h"

namespace decent::schedules {
namespace {

// MiniCPM's share of a training for the decay.
constexpr std::int64_t kDecayShare = 10;

struct StableDecayOptions {
  std::optional<std::int64_t> decay_steps;
  std::string decay_type = "linear";
  double eta_min = 0;
};

// What is left of the fall after a share of its steps.
double left_after(const std::string& type, double share) {
  if (type == "cosine") return (1 + std::cos(std::numbers::pi * share)) / 2;
  return 1 - (type == "linear" ? share : std::sqrt(share));
}

struct WarmupStableDecay {
  using Options = StableDecayOptions;
  static constexpr std::string_view kName = "warmup_stable_decay";
  static constexpr std::array kOptions = {
      Option<Options>{"decay_steps",
                      "Updates at the end over which the learning rate falls; null: a tenth of "
                      "all updates after the warm-up",
                      &Options::decay_steps, at_least(1)},
      Option<Options>{.name = "decay_type",
                      .meaning = "Curve of the fall: a line, a cosine, or 1 - sqrt, which falls "
                                 "fast at first",
                      .member = &Options::decay_type,
                      .texts = {"linear", "cosine", "1-sqrt"}},
      Option<Options>{"eta_min", "Learning rate at the end of the fall", &Options::eta_min,
                      at_least(0)}};

  static void resolve(Options& options, const Rest& of) {
    if (!options.decay_steps)
      options.decay_steps = std::max<std::int64_t>(1, of.steps / kDecayShare);
  }

  static Schedule make(const Options& o, const Rest& of) {
    const std::int64_t stable = std::max<std::int64_t>(0, of.steps - *o.decay_steps);
    return [o, lr = of.lr, stable](std::int64_t t) {
      const std::int64_t falling = std::clamp<std::int64_t>(t - 1 - stable, 0, *o.decay_steps);
      const double share = static_cast<double>(falling) / static_cast<double>(*o.decay_steps);
      return o.eta_min + (lr - o.eta_min) * left_after(o.decay_type, share);
    };
  }
};

}  // namespace

Row warmup_stable_decay() { return row<WarmupStableDecay>(); }

}  // namespace decent::schedules
