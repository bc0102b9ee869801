#pragma once
// What a recipe says about updates, as options of optim, and back.

#include <optional>
#include <string>

#include "decent/config/recipe.h"
#include "decent/optim/whole_gradient.h"

namespace decent {

ClipOptions clip_options(const ParallelRecipe& recipe);

/// Nothing if losses are not scaled.
std::optional<LossScalerOptions> loss_scaler_options(const AmpRecipe& recipe);

}  // namespace decent
