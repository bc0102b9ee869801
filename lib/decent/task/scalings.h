#pragma once
// The scaling of the transform `normalize`: which fields have it, how to undo it, and which part of
// it goes into a written model.

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <vector>

#include "decent/data/transforms/normalize.h"
#include "decent/model/file_scaling.h"
#include "decent/task/task.h"

namespace decent {

/// The normalizations of the field in a list of transforms, in their order. It must have numbers in
/// place of `auto` (see with_statistics); otherwise throws UserError.
std::vector<Normalization> normalizations_of(const std::vector<TransformRecipe>& transforms,
                                             const std::string& field);

/// A batch of numbers in the units that they had before `normalizations`, as float64.
at::Tensor in_original_units(const at::Tensor& batch,
                             std::span<const Normalization> normalizations);

/// The scaling that data.export_transforms puts into the model's file: that of evaluation. Empty if
/// the key is false. Throws UserError if that is impossible, or would differ from the transforms.
FileScaling exported_scaling(const Task& task);

}  // namespace decent
