#include "decent/config/update_options.h"

namespace decent {

ClipOptions clip_options(const ParallelRecipe& recipe) {
  return {.norm = recipe.grad_clip_norm,
          .each_bucket = recipe.grad_clip_scope == ClipScope::bucket};
}

std::optional<LossScalerOptions> loss_scaler_options(const AmpRecipe& recipe) {
  if (recipe.dtype != AmpDType::fp16) return std::nullopt;
  return LossScalerOptions{.init_scale = recipe.init_scale,
                           .growth_factor = recipe.growth_factor,
                           .backoff_factor = recipe.backoff_factor,
                           .growth_interval = recipe.growth_interval};
}

}  // namespace decent
