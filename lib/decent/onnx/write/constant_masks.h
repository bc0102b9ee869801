#pragma once
// Random numbers that only training needs become constants.

#include <span>
#include <vector>

#include "decent/onnx/format/splice.h"
#include "decent/onnx/patterns/patterns.h"

namespace decent::onnx {

/// What to do where a model has no form for inference.
inline constexpr const char* kWrittenAsItIs = "model.export_mode: train writes it as it is";

/// Edits that make each mask of random numbers one of ones of its shape and type. Throws UserError
/// where one has nodes in several functions of the model.
void add_constant_masks(Input& file, const Model& model, std::span<const RandomMask> masks,
                        std::vector<Edit>& edits);

}  // namespace decent::onnx
