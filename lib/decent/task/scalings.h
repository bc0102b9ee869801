#pragma once
// The transform `normalize` from the other side: which fields it scales, how numbers come back to
// the data's units, and what of it goes into a written model.

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <vector>

#include "decent/data/transforms/normalize.h"
#include "decent/model/file_scaling.h"
#include "decent/task/task.h"

namespace decent {

/// Those of data.transforms that scale the field, in their order. The recipe has numbers in place
/// of `auto` (see with_statistics); throws UserError where it has none.
std::vector<Normalization> normalizations_of(const DataRecipe& recipe, const std::string& field);

/// A batch of numbers in the units that they had before `normalizations`, as float64.
at::Tensor in_original_units(const at::Tensor& batch,
                             std::span<const Normalization> normalizations);

/// What data.export_transforms puts into the model's file: nothing where it is false. Throws
/// UserError where that is not possible, or would not be what the model was trained on.
FileScaling exported_scaling(const Task& task);

}  // namespace decent
