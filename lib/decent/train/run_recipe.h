#pragma once
// The recipe that a run was made with, as the run keeps it.

#include <filesystem>
#include <optional>

#include "decent/config/recipe.h"

namespace decent {

/// The recipe of the run in the output folder `output`, or of the run that saved `checkpoint`.
/// Nothing where there is none that this program can read.
std::optional<Recipe> recipe_of_run(const std::filesystem::path& output);
std::optional<Recipe> recipe_of_checkpoint(const std::filesystem::path& checkpoint);

/// The recipe with the numbers that a run of an older version, which kept none in data.json,
/// measured for its `normalize: auto`: those of the recipe in `checkpoint`, or without one in the
/// output folder. So they stay what they were, whatever has become of the training data since.
/// Where nothing can be read there, or the run's transforms were others, the recipe as it is.
Recipe with_kept_statistics(Recipe recipe, const std::optional<std::filesystem::path>& checkpoint);

}  // namespace decent
