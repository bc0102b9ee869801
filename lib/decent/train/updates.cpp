#include "decent/train/updates.h"

#include <utility>

#include "decent/task/param_groups.h"

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

std::optional<LossScalerOptions> loss_scaler_of(const AmpRecipe& recipe) {
  if (recipe.dtype != AmpDType::fp16) return std::nullopt;
  return LossScalerOptions{.init_scale = recipe.init_scale,
                           .growth_factor = recipe.growth_factor,
                           .backoff_factor = recipe.backoff_factor,
                           .growth_interval = recipe.growth_interval};
}

}  // namespace

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
          .exchange = recipe.comm_dtype,
          .average_buffers = recipe.average_buffers,
          .clip = {.norm = recipe.grad_clip_norm,
                   .each_bucket = recipe.grad_clip_scope == ClipScope::bucket},
          .update_time = setup.update_time,
          .loss_scaler = loss_scaler_of(setup.recipe.amp),
          .warn = std::move(warn)};
}

bool updates_in_backward(const Setup& setup) {
  return parallel_options(setup, nullptr).updates_in_backward();
}

std::string topology_name(const TopologyRecipe& recipe) {
  return recipe.phases.empty() ? recipe.name : "custom";
}

}  // namespace decent
