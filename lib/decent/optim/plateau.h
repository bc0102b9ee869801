#pragma once
// A learning rate that falls when evaluations get no better: torch.optim.lr_scheduler's
// ReduceLROnPlateau.

#include <cstdint>
#include <vector>

#include "decent/optim/improvement.h"

namespace decent {

/// The names and defaults are torch's, whose `mode` and `threshold_mode` are in `better`.
struct PlateauOptions {
  double lr = 1e-3;            // at the start
  double factor = 0.1;         // of the next learning rate
  std::int64_t patience = 10;  // evaluations in a row without improvement that it outlasts
  Improvement better = {.threshold = 1e-4, .relative = true};
  std::int64_t cooldown = 0;  // evaluations after a fall of which none counts
  double min_lr = 0;
  double eps = 1e-8;  // a fall by less is none
};

/// Not thread-safe.
class Plateau {
 public:
  /// Throws UserError for options that are out of range.
  explicit Plateau(const PlateauOptions& options);

  const PlateauOptions& options() const { return options_; }
  /// The learning rate of `step`. For steps after the last evaluation it is the present one: what
  /// they will have, unless an evaluation before them lowers it.
  double lr(std::int64_t step) const;

  /// An evaluation after `step`, and its value of the metric, which may be NaN. Steps must not
  /// decrease. Returns whether the learning rate fell, for the steps after this one.
  bool saw(std::int64_t step, double value);

  /// A learning rate, and the first step that has it.
  struct Fall {
    std::int64_t first_step = 0;
    double lr = 0;
  };
  struct State {
    double start = 0;              // options().lr of whoever saved it
    std::vector<Fall> falls = {};  // all until now: exchanges ask for the rates of past steps
    BestSoFar best = {};           // by evaluations; the count begins again after a fall
    std::int64_t cooldown = 0;     // that are left
    double lr() const { return falls.empty() ? start : falls.back().lr; }
  };
  const State& state() const { return state_; }
  /// Goes on from there; with another learning rate at the start, as if it had been so from there.
  void restore(const State& state);

 private:
  bool fall(std::int64_t step);

  PlateauOptions options_;
  State state_;
};

}  // namespace decent
