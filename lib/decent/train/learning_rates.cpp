#include "decent/train/learning_rates.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "decent/config/choices.h"
#include "decent/config/option_keys.h"
#include "decent/config/scalars.h"
#include "decent/core/error.h"
#include "decent/task/metrics.h"

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

// Null for schedules that depend on the step alone.
std::shared_ptr<Plateau> plateau_of(const Recipe& whole, double lr) {
  const ScheduleRecipe& recipe = whole.schedule;
  if (!schedule_follows_evaluations(recipe.name)) return nullptr;
  check_measured(whole, "schedule.metric", recipe.metric);
  if (!whole.eval.every_steps && !whole.eval.every_epochs)
    throw UserError("schedule." + recipe.name +
                    " needs evaluations while the run trains: "
                    "eval.every_steps and eval.every_epochs are null");
  return std::make_shared<Plateau>(PlateauOptions{
      .lr = lr,
      .factor = recipe.factor,
      .patience = recipe.patience,
      .better = {.higher_is_better = recipe.mode ? *recipe.mode == PlateauMode::max
                                                 : metric(recipe.metric).better == Better::higher,
                 .threshold = recipe.threshold,
                 .relative = recipe.threshold_mode == ThresholdMode::relative},
      .cooldown = recipe.cooldown,
      .min_lr = recipe.min_lr,
      .eps = recipe.eps});
}

std::string text_of(const std::string& name, const ScheduleOptions& options) {
  std::string text = name + ", lr " + config::number_text(options.lr);
  const Options arguments = schedule_arguments(name, options);
  for (const auto& [argument, value] : arguments.all())
    text += ", " + argument + " " + config::print_option(value);
  return text;
}

std::string rate_at(const LearningRates& rates, std::int64_t step) {
  std::array<char, 16> text = {};
  std::snprintf(text.data(), text.size(), "%.3g", rates.schedule(step));
  return text.data();
}

}  // namespace

LearningRates learning_rates_of(const Recipe& recipe, int workers, std::int64_t steps) {
  ScheduleOptions options = options_of(recipe, workers, steps);
  const auto plateau = plateau_of(recipe, options.lr);
  options.plateau = plateau;
  options.metric = recipe.schedule.metric;
  return {.schedule = make_schedule(recipe.schedule.name, options),
          .peak = options.lr,
          .text = text_of(recipe.schedule.name, options),
          .plateau = plateau};
}

std::optional<std::string> lr_warning(const ScheduleRecipe& schedule, const LearningRates& rates,
                                      std::int64_t steps) {
  const std::int64_t end = schedule.total_steps.value_or(steps);
  if (schedule.name != "one_cycle" || end >= steps) return std::nullopt;
  return "schedule.total_steps: the cycle ends at step " + std::to_string(end) + " of " +
         std::to_string(steps) + ", and the learning rate stays at " + rate_at(rates, end) +
         " from there";
}

std::optional<std::string> changed_rates(const std::string& before, const LearningRates& rates,
                                         std::int64_t step, std::int64_t steps) {
  if (before.empty() || before == rates.text || rates.plateau) return std::nullopt;
  return "the learning rate goes on as the schedule has it in a run of " + std::to_string(steps) +
         " steps: " + rate_at(rates, step + 1) + " in step " + std::to_string(step + 1) + ", " +
         rate_at(rates, steps) + " in step " + std::to_string(steps) + " (" + rates.text +
         "; before: " + before + ")";
}

}  // namespace decent
