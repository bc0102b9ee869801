#include "decent/train/updates.h"

#include "decent/config/update_options.h"
#include "decent/task/param_groups.h"

namespace decent {

std::shared_ptr<const BucketUpdate> make_update(const OptimizerRecipe& recipe) {
  return make_update(recipe.name, recipe.options);
}

UpdateTime update_time(const Run& run) {
  const bool after = run.task.recipe.parallel.update == UpdateMode::after_backward;
  return after || run.trial.weights_needed_later ? UpdateTime::after_backward
                                                 : UpdateTime::in_backward;
}

TrainingOptions training_options(const Run& run, const TrainingSigns& signs) {
  const Recipe& recipe = run.task.recipe;
  return {.update = make_update(recipe.optimizer),
          .schedule = run.plan.rates.schedule,
          .settings =
              [optimizer = recipe.optimizer](const std::string& name, const at::Tensor& parameter) {
                return settings_of(optimizer, name, parameter);
              },
          .bucket_mb = recipe.parallel.bucket_mb,
          .average_buffers = recipe.parallel.average_buffers,
          .clip = clip_options(recipe.parallel),
          .update_time = update_time(run),
          .loss_scaler = loss_scaler_options(recipe.amp),
          .ema = recipe.optimizer.ema,
          .trace = signs.trace,
          .warn = signs.warn};
}

bool updates_in_backward(const Run& run) { return training_options(run, {}).updates_in_backward(); }

bool needs_near_copies(const ParallelRecipe& recipe) {
  if (!parallel_method(recipe.method).averages_weights) return false;
  return exchange_method(recipe.comm_dtype).needs_near_copies ||
         (recipe.comm_dtype_within && exchange_method(*recipe.comm_dtype_within).needs_near_copies);
}

std::string topology_name(const TopologyRecipe& recipe) {
  return recipe.phases.empty() ? recipe.name : "custom";
}

std::string topology_name(const Run& run) {
  const std::string& otherwise = run.plan.topology_otherwise;
  return otherwise.empty() ? topology_name(run.task.recipe.parallel.topology) : otherwise;
}

}  // namespace decent
