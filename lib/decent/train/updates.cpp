#include "decent/train/updates.h"

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

UpdateTime update_time(const Run& run) {
  const bool after = run.task.recipe.parallel.update == UpdateMode::after_backward;
  return after || run.trial.weights_needed_later ? UpdateTime::after_backward
                                                 : UpdateTime::in_backward;
}

bool updates_in_backward(const Run& run) {
  return options_of<TrainingOptions>(run, {}).updates_in_backward();
}

bool needs_near_copies(const ParallelRecipe& recipe) {
  if (!parallel_method(recipe.method).averages_weights) return false;
  return exchange_method(recipe.comm_dtype).needs_near_copies ||
         (recipe.comm_dtype_within && exchange_method(*recipe.comm_dtype_within).needs_near_copies);
}

std::string topology_name(const TopologyRecipe& recipe) {
  return recipe.phases.empty() ? recipe.name : "custom";
}

}  // namespace decent
