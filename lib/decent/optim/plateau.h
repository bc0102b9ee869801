#pragma once
// A learning rate that falls when evaluations get no better: torch.optim.lr_scheduler's
// ReduceLROnPlateau.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decent/core/options.h"
#include "decent/optim/improvement.h"

namespace decent {

/// The names and defaults are torch's.
struct PlateauOptions {
  double lr = 1e-3;                      // at the start
  std::string metric = "loss";           // for the caller, who passes its values to saw()
  std::optional<std::string> mode = {};  // whether "min" or "max" is better; none: min
  double factor = 0.1;                   // of the next learning rate
  std::int64_t patience = 10;            // tolerated evaluations in a row without improvement
  double threshold = 1e-4;               // by which a value must be better than the best
  std::string threshold_mode = "rel";    // a share of the best value, or "abs": a difference
  std::int64_t cooldown = 0;             // evaluations after a fall that do not count
  double min_lr = 0;
  double eps = 1e-8;  // smaller falls do not take place
};

/// The options of a recipe's schedule, by their names. Throws UserError for a value of another
/// type.
PlateauOptions plateau_options(const Options& given);

/// Not thread-safe.
class Plateau {
 public:
  /// Throws UserError for options that are out of range.
  explicit Plateau(const PlateauOptions& options);

  const PlateauOptions& options() const { return options_; }
  /// The learning rate of `step`. Steps after the last evaluation get the present rate, which they
  /// will have unless an evaluation before them lowers it.
  double lr(std::int64_t step) const;

  /// Takes the metric of an evaluation after `step`, which may be NaN. Steps must not decrease.
  /// Returns whether the learning rate fell for the steps after this one.
  bool saw(std::int64_t step, double value);

  /// A learning rate, and the first step that has it.
  struct Fall {
    std::int64_t first_step = 0;
    double lr = 0;
  };
  struct State {
    double start = 0;              // options().lr of the run that saved it
    std::vector<Fall> falls = {};  // all so far, because exchanges ask for the rates of past steps
    BestSoFar best = {};           // counts evaluations; starts again at 0 after a fall
    std::int64_t cooldown = 0;     // evaluations left in it
    double lr() const { return falls.empty() ? start : falls.back().lr; }
  };
  const State& state() const { return state_; }
  /// Goes on from `state`. If the learning rate at the start is another one now, it continues as if
  /// it had always been that.
  void restore(const State& state);

 private:
  bool fall(std::int64_t step);

  PlateauOptions options_;
  Improvement better_;
  State state_;
};

}  // namespace decent
