#pragma once
// `normalize: auto`: mean and standard deviation of the training data.

#include <vector>

#include "decent/config/recipe.h"

namespace decent {

/// The recipe with numbers in place of each `normalize: auto` of data.transforms: mean and standard
/// deviation (population, as scikit-learn's StandardScaler; 1 if it is 0) of the field over
/// data.train, after the earlier transforms except random ones. One of each for every place of the
/// field's first dimension: channels of images, columns of tables. If the source decodes its
/// samples, at most 4096 count, spread evenly over the data. The n-th `normalize` of a field in
/// data.eval_transforms gets the numbers of the n-th in data.transforms. Throws UserError if the
/// data cannot be read, or if there is no such one.
Recipe with_statistics(Recipe recipe);

/// Whether there is a `normalize: auto` without numbers.
bool needs_statistics(const Recipe& recipe);

/// The same with the numbers of `theirs`, transforms that already have them, if they equal the
/// recipe's except for the numbers; else `recipe` unchanged.
Recipe with_statistics_of(const std::vector<TransformRecipe>& theirs, Recipe recipe);

}  // namespace decent
