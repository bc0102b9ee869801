#include "decent/train/updates.h"

#include <utility>

#include "decent/config/update_options.h"
#include "decent/task/param_groups.h"
#include "decent/train/methods.h"

namespace decent {

std::shared_ptr<const BucketUpdate> make_update(const OptimizerRecipe& recipe) {
  return make_update(recipe.name, {.momentum = recipe.momentum,
                                   .nesterov = recipe.nesterov,
                                   .beta1 = recipe.betas[0],
                                   .beta2 = recipe.betas[1],
                                   .eps = recipe.eps,
                                   .accum_iter = recipe.accum_iter,
                                   .alpha = recipe.alpha});
}

namespace {

UpdateTime update_time(const Run& run) {
  const bool after = run.task.recipe.parallel.update == UpdateMode::after_backward;
  return after || run.trial.weights_needed_later ? UpdateTime::after_backward
                                                 : UpdateTime::in_backward;
}

}  // namespace

DecentralizedOptions parallel_options(const Run& run,
                                      std::function<void(const std::string&)> warn) {
  const ParallelRecipe& recipe = run.task.recipe.parallel;
  return {.topology = run.plan.topology,
          .update = make_update(run.task.recipe.optimizer),
          .schedule = run.plan.rates.schedule,
          .settings =
              [optimizer = run.task.recipe.optimizer](const std::string& name,
                                                      const at::Tensor& parameter) {
                return settings_of(optimizer, name, parameter);
              },
          .bucket_mb = recipe.bucket_mb,
          .gamma = recipe.gamma,
          .exchange = parallel_method(recipe.method).averages_weights ? recipe.comm_dtype : "fp32",
          .slices = recipe.slices,
          .modulo_range = recipe.modulo_range,
          .average_buffers = recipe.average_buffers,
          .clip = clip_options(recipe),
          .update_time = update_time(run),
          .loss_scaler = loss_scaler_options(run.task.recipe.amp),
          .warn = std::move(warn)};
}

bool updates_in_backward(const Run& run) {
  return parallel_options(run, nullptr).updates_in_backward();
}

bool needs_near_copies(const ParallelRecipe& recipe) {
  if (!parallel_method(recipe.method).averages_weights) return false;
  return exchange_method(recipe.comm_dtype).needs_near_copies;
}

std::string topology_name(const TopologyRecipe& recipe) {
  return recipe.phases.empty() ? recipe.name : "custom";
}

}  // namespace decent
