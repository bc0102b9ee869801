#pragma once
// The learning rates of a run: optimizer.lr, scaled to the number of workers, and its schedule.

#include <cstdint>
#include <memory>
#include <string>

#include "decent/config/recipe.h"
#include "decent/optim/plateau.h"
#include "decent/optim/schedule.h"

namespace decent {

struct LearningRates {
  Schedule schedule;
  double peak = 0;  // optimizer.lr, scaled
  std::int64_t warmup_steps = 0;
  /// The schedule's name and its resolved arguments with all their digits: runs with the same text
  /// have the same learning rate in every step.
  std::string text;
  std::shared_ptr<Plateau> plateau = nullptr;  // of a schedule that follows evaluations
};

/// `steps`: the updates of the whole run.
LearningRates learning_rates_of(const Recipe& recipe, int workers, std::int64_t steps,
                                std::int64_t steps_per_epoch);

/// A warning if the schedule ends before a run of `steps` updates does; PyTorch would refuse to
/// step beyond its end.
std::optional<std::string> lr_warning(const ScheduleRecipe& schedule, const LearningRates& rates,
                                      std::int64_t steps);

/// A text for the user if a run resumes after `step` with learning rates other than its
/// checkpoint's, whose text was `before` (empty: unknown). The new rates are those of the schedule
/// for a run that has all `steps` from its beginning.
std::optional<std::string> changed_rates(const std::string& before, const LearningRates& rates,
                                         std::int64_t step, std::int64_t steps);

}  // namespace decent
