#pragma once
// The learning rates of a run: optimizer.lr, scaled to the number of workers, and its schedule.

#include <cstdint>
#include <string>

#include "decent/config/recipe.h"
#include "decent/optim/schedule.h"

namespace decent {

struct LearningRates {
  Schedule schedule;
  double peak = 0;  // optimizer.lr, scaled
  /// The schedule's name and arguments with all their digits, as they came out: runs with the same
  /// text have the same learning rate in every step.
  std::string text;
};

/// `steps`: the updates of the whole run.
LearningRates learning_rates_of(const Recipe& recipe, int workers, std::int64_t steps);

}  // namespace decent
