#pragma once
// The clipping and loss scaling that a recipe asks for, as options of optim.

#include <optional>

#include "decent/config/recipe.h"
#include "decent/optim/whole_gradient.h"

namespace decent {

ClipOptions clip_options(const ParallelRecipe& recipe);

/// Nothing if losses are not scaled.
std::optional<LossScalerOptions> loss_scaler_options(const AmpRecipe& recipe);

}  // namespace decent
