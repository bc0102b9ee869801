#include "decent/train/learning_rates.h"

#include <algorithm>
#include <cmath>

#include "decent/config/choices.h"
#include "decent/config/option_keys.h"
#include "decent/config/scalars.h"

namespace decent {
namespace {

// Adam and its kin divide by the size of a worker's own gradient, in which the noise is sqrt(N)
// times that of the mean over N workers: the square root rule for batch sizes (arXiv 2205.10287).
double peak_lr(const OptimizerRecipe& recipe, int workers) {
  return recipe.lr_scaling == LrScaling::sqrt ? recipe.lr * std::sqrt(workers) : recipe.lr;
}

ScheduleOptions options_of(const Recipe& recipe, int workers, std::int64_t steps) {
  const ScheduleRecipe& schedule = recipe.schedule;
  return {.lr = peak_lr(recipe.optimizer, workers),
          .warmup_steps = schedule.warmup_steps,
          .t_max = schedule.t_max,
          .eta_min = schedule.eta_min,
          .warmup_decay = schedule.warmup_decay,
          .start_factor = schedule.start_factor,
          .end_factor = schedule.end_factor,
          .total_iters = schedule.total_iters,
          .step_size = schedule.step_size,
          .gamma = schedule.gamma,
          .total_steps = schedule.total_steps,
          .pct_start = schedule.pct_start,
          .anneal_strategy = std::string(name_of(schedule.anneal_strategy)),
          .div_factor = schedule.div_factor,
          .final_div_factor = schedule.final_div_factor,
          .three_phase = schedule.three_phase,
          .steps = steps};
}

std::string text_of(const std::string& name, const ScheduleOptions& options) {
  std::string text = name + ", lr " + config::number_text(options.lr);
  const Options arguments = schedule_arguments(name, options);
  for (const auto& [argument, value] : arguments.all())
    text += ", " + argument + " " + config::print_option(value);
  return text;
}

}  // namespace

LearningRates learning_rates_of(const Recipe& recipe, int workers, std::int64_t steps) {
  const ScheduleOptions options = options_of(recipe, workers, steps);
  return {.schedule = make_schedule(recipe.schedule.name, options),
          .peak = options.lr,
          .text = text_of(recipe.schedule.name, options)};
}

}  // namespace decent
