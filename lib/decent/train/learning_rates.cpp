#include "decent/train/learning_rates.h"

#include <algorithm>
#include <cmath>

#include "decent/config/option_keys.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/task/metrics.h"

namespace decent {
namespace {

// Adam and its kin divide by the size of a worker's own gradient, in which the noise is sqrt(N)
// times that of the mean over N workers: the square root rule for batch sizes (arXiv 2205.10287).
double peak_lr(const OptimizerRecipe& recipe, int workers) {
  return recipe.lr_scaling == LrScaling::sqrt ? recipe.lr * std::sqrt(workers) : recipe.lr;
}

// Null for schedules that depend on the step alone.
std::shared_ptr<Plateau> plateau_of(const Recipe& recipe, double lr) {
  const std::string& schedule = recipe.schedule.name;
  if (!schedule_follows_evaluations(schedule)) return nullptr;
  PlateauOptions options = plateau_options(recipe.schedule.options);
  check_measured(recipe, "schedule.metric", options.metric);
  if (!recipe.eval.every_steps && !recipe.eval.every_epochs)
    throw UserError("schedule." + schedule +
                    " needs evaluations while the run trains: "
                    "eval.every_steps and eval.every_epochs are null");
  options.lr = lr;
  if (!options.mode) options.mode = metric(options.metric).better == Better::higher ? "max" : "min";
  return std::make_shared<Plateau>(options);
}

std::string text_of(const std::string& name, double lr, const Options& arguments) {
  std::string text = name + ", lr " + number_text(lr);
  for (const auto& [argument, value] : arguments.all())
    text += ", " + argument + " " + config::print_option(value);
  return text;
}

std::string rate_at(const LearningRates& rates, std::int64_t step) {
  return short_number_text(rates.schedule(step));
}

}  // namespace

LearningRates learning_rates_of(const Recipe& recipe, int workers, std::int64_t steps,
                                std::int64_t steps_per_epoch) {
  const double peak = peak_lr(recipe.optimizer, workers);
  const auto plateau = plateau_of(recipe, peak);
  const ScheduleOptions options{.lr = peak,
                                .steps = steps,
                                .steps_per_epoch = steps_per_epoch,
                                .options = recipe.schedule.options,
                                .chain = recipe.schedule.chain,
                                .plateau = plateau};
  const Options arguments = schedule_arguments(recipe.schedule.name, options);
  return {.schedule = make_schedule(recipe.schedule.name, options),
          .peak = peak,
          .warmup_steps = arguments.get<std::int64_t>("warmup_steps"),
          .text = text_of(recipe.schedule.name, peak, arguments),
          .plateau = plateau};
}

std::optional<std::string> lr_warning(const ScheduleRecipe& schedule, const LearningRates& rates,
                                      std::int64_t steps) {
  const std::int64_t end =
      rates.warmup_steps + schedule.options.get_if<std::int64_t>("total_steps").value_or(steps);
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
