#include "decent/train/learning_rates.h"

#include <algorithm>
#include <cmath>

#include "decent/config/choices.h"
#include "decent/config/scalars.h"

namespace decent {
namespace {

// Adam and its kin divide by the size of a worker's own gradient, in which the noise is sqrt(N)
// times that of the mean over N workers: the square root rule for batch sizes (arXiv 2205.10287).
double peak_lr(const OptimizerRecipe& recipe, int workers) {
  return recipe.lr_scaling == LrScaling::sqrt ? recipe.lr * std::sqrt(workers) : recipe.lr;
}

CosineWarmup arguments_of(const Recipe& recipe, int workers, std::int64_t steps) {
  const ScheduleRecipe& schedule = recipe.schedule;
  const std::int64_t after_warmup = std::max<std::int64_t>(1, steps - schedule.warmup_steps);
  return {.lr = peak_lr(recipe.optimizer, workers),
          .warmup_steps = schedule.warmup_steps,
          .t_max = schedule.t_max.value_or(after_warmup),
          .eta_min = schedule.eta_min,
          .warmup_decay = schedule.warmup_decay};
}

std::string text_of(ScheduleName name, const CosineWarmup& arguments) {
  const std::string peak = std::string(name_of(name)) + ", lr " + config::number_text(arguments.lr);
  if (name == ScheduleName::constant) return peak;
  return peak + ", warmup_steps " + std::to_string(arguments.warmup_steps) + ", t_max " +
         std::to_string(arguments.t_max) + ", eta_min " + config::number_text(arguments.eta_min) +
         ", warmup_decay " + config::number_text(arguments.warmup_decay);
}

}  // namespace

LearningRates learning_rates_of(const Recipe& recipe, int workers, std::int64_t steps) {
  const ScheduleName name = recipe.schedule.name;
  const CosineWarmup arguments = arguments_of(recipe, workers, steps);
  return {.schedule = make_schedule(name_of(name), arguments),
          .peak = arguments.lr,
          .text = text_of(name, arguments)};
}

}  // namespace decent
