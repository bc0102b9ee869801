#pragma once
// What makes a model one for inference.

#include <span>
#include <vector>

#include "decent/onnx/format/splice.h"
#include "decent/onnx/patterns/patterns.h"

namespace decent::onnx {

/// Edits that turn off training: training_mode of BatchNormalization becomes 0 and its outputs
/// after the first, which only training has, are removed; so is Dropout's third input
/// (training_mode). `masks` become ones. In order. What only fed that input stays, without use.
/// Throws UserError where another node or an output of a graph uses what inference does not make.
std::vector<Edit> inference_form(Input& file, const Model& model,
                                 std::span<const RandomMask> masks);

}  // namespace decent::onnx
