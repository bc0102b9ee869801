#pragma once
// The recipe that a run was made with, read from the run's own files.

#include <filesystem>
#include <optional>

#include "decent/config/recipe.h"

namespace decent {

/// The recipe of the run in the output folder `output`, or of the run that saved `checkpoint`.
/// Nothing if there is no recipe that this program can read.
std::optional<Recipe> recipe_of_run(const std::filesystem::path& output);
std::optional<Recipe> recipe_of_checkpoint(const std::filesystem::path& checkpoint);

/// For a run of an older version, which kept no numbers in data.json: the recipe with the numbers
/// that the run measured for `normalize: auto`, taken from the recipe in `checkpoint`, or in the
/// output folder if there is none. So they stay the same even if the training data has changed.
/// Returns the recipe as it is if nothing can be read there or the run had other transforms.
Recipe with_kept_statistics(Recipe recipe, const std::optional<std::filesystem::path>& checkpoint);

}  // namespace decent
