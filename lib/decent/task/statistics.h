#pragma once
// `normalize: auto`: mean and standard deviation of the training data.

#include <vector>

#include "decent/config/recipe.h"

namespace decent {

/// The recipe with numbers in place of each `normalize: auto` of data.transforms: mean and standard
/// deviation (population, as scikit-learn's StandardScaler; 1 where it is 0) of the field over
/// data.train, after the transforms in front of it without those that draw random numbers. One of
/// each for every place of the field's first dimension: channels of images, columns of tables. Of
/// sources that decode their samples at most 4096 count, spread evenly over the data. Throws
/// UserError where the data cannot be read.
Recipe with_statistics(Recipe recipe);

/// Whether there is a `normalize: auto` without numbers.
bool needs_statistics(const Recipe& recipe);

/// The same with the numbers of transforms that have them already, where these are alike apart from
/// the numbers; else `recipe` as it is.
Recipe with_statistics_of(const std::vector<TransformRecipe>& theirs, Recipe recipe);

}  // namespace decent
