#include "decent/train/updates.h"

#include <utility>

#include "decent/config/choices.h"
#include "decent/train/param_groups.h"

namespace decent {

std::shared_ptr<const BucketUpdate> make_update(const OptimizerRecipe& recipe) {
  return make_update(name_of(recipe.name), {.momentum = recipe.momentum,
                                            .nesterov = recipe.nesterov,
                                            .beta1 = recipe.betas[0],
                                            .beta2 = recipe.betas[1],
                                            .eps = recipe.eps,
                                            .accum_iter = recipe.accum_iter});
}

DecentralizedOptions parallel_options(const Setup& setup,
                                      std::function<void(const std::string&)> warn) {
  const ParallelRecipe& recipe = setup.recipe.parallel;
  return {.topology = setup.topology,
          .update = make_update(setup.recipe.optimizer),
          .schedule = setup.schedule,
          .settings =
              [optimizer = setup.recipe.optimizer](const std::string& name,
                                                   const at::Tensor& parameter) {
                return settings_of(optimizer, name, parameter);
              },
          .bucket_mb = recipe.bucket_mb,
          .gamma = recipe.gamma,
          .average_buffers = recipe.average_buffers,
          .clip = {.norm = recipe.grad_clip_norm,
                   .each_bucket = recipe.grad_clip_scope == ClipScope::bucket},
          .update_time = setup.update_time,
          .warn = std::move(warn)};
}

bool updates_in_backward(const Setup& setup) {
  return setup.update_time == UpdateTime::in_backward &&
         !parallel_options(setup, nullptr).clip.needs_whole_gradient();
}

std::string topology_name(const TopologyRecipe& recipe) {
  return recipe.phases.empty() ? std::string(name_of(recipe.name)) : "custom";
}

}  // namespace decent
