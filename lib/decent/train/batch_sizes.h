#pragma once
// How many samples each worker takes at once: data.batch_size for the workers of a run.

#include <cstdint>
#include <vector>

#include "decent/config/recipe.h"
#include "decent/core/membership.h"

namespace decent {

/// The samples of a micro-batch of each member, by place. Throws UserError if the recipe names a
/// host or a rank that the run does not have. A run that resumes may have lost it, so that this is
/// no mistake if `resumes`.
std::vector<std::int64_t> batch_sizes(const BatchSizeRecipe& recipe, const Member& member,
                                      bool resumes);

}  // namespace decent
