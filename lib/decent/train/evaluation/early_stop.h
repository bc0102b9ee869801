#pragma once
// train.stop: ends a run that gets no better.

#include <cstdint>
#include <string>

#include "decent/config/recipe.h"
#include "decent/optim/improvement.h"

namespace decent {

/// As PyTorch Lightning's EarlyStopping: a value that is better than the best by more than
/// min_delta is the new best; after `patience` evaluations in a row without one, the run ends.
class EarlyStop {
 public:
  /// Throws UserError for an unknown metric.
  explicit EarlyStop(const StopRecipe& recipe);

  const std::string& metric() const { return recipe_.metric; }
  /// Takes an evaluation's value of the metric, which may be NaN.
  void saw(std::int64_t step, double value);
  bool stops() const { return state_.best.without_improvement >= recipe_.patience; }
  /// "loss has not got better than 0.25, of step 300, in 5 evaluations".
  std::string text() const;

  struct State {
    BestSoFar best = {};  // counts in evaluations
    std::int64_t best_step = 0;
  };
  const State& state() const { return state_; }
  void restore(const State& state) { state_ = state; }

 private:
  StopRecipe recipe_;
  Improvement better_;
  State state_;
};

}  // namespace decent
