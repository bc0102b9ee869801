#pragma once
// Replaces random numbers that only training needs by constants.

#include <span>
#include <vector>

#include "decent/onnx/format/splice.h"
#include "decent/onnx/patterns/patterns.h"

namespace decent::onnx {

/// Advice for a model without a form for inference.
inline constexpr const char* kWrittenAsItIs = "model.export_mode: train writes it as it is";

/// Edits that replace each mask of random numbers by ones of the same shape and type. Throws
/// UserError if a mask has nodes in several functions of the model.
void add_constant_masks(Input& file, const Model& model, std::span<const RandomMask> masks,
                        std::vector<Edit>& edits);

}  // namespace decent::onnx
