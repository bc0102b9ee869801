#pragma once
// What a recipe asks of gradients, as the options that act on it.

#include <optional>

#include "decent/config/recipe.h"
#include "decent/optim/whole_gradient.h"

namespace decent {

ClipOptions clip_options(const ParallelRecipe& recipe);

/// Nothing where losses are not scaled.
std::optional<LossScalerOptions> loss_scaler_options(const AmpRecipe& recipe);

}  // namespace decent
