#include "decent/train/evaluation/early_stop.h"

#include "decent/config/scalars.h"
#include "decent/core/text.h"
#include "decent/task/metrics.h"

namespace decent {

EarlyStop::EarlyStop(const StopRecipe& recipe)
    : recipe_(recipe),
      better_({.higher_is_better = decent::metric(recipe.metric).better == Better::higher,
               .threshold = recipe.min_delta}) {}

void EarlyStop::saw(std::int64_t step, double value) {
  if (state_.best.saw(value, better_)) state_.best_step = step;
}

std::string EarlyStop::text() const {
  const std::string evaluations = counted(state_.best.without_improvement, "evaluation");
  if (!state_.best.value) return recipe_.metric + " was not finite in " + evaluations;
  return recipe_.metric + " has not got better than " + number_text(*state_.best.value) +
         ", of step " + std::to_string(state_.best_step) + ", in " + evaluations;
}

}  // namespace decent
