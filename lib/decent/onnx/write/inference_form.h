#pragma once
// Converts a model to its form for inference.

#include <span>
#include <vector>

#include "decent/onnx/format/splice.h"
#include "decent/onnx/patterns/patterns.h"

namespace decent::onnx {

/// Sorted edits that turn off training. training_mode of BatchNormalization becomes 0, and its
/// outputs after the first, which exist only in training, are removed; so is Dropout's third input
/// (training_mode). `masks` become ones. Nodes that only fed that input stay, unused. Throws
/// UserError if another node or an output of a graph uses a value that inference does not compute.
std::vector<Edit> inference_form(Input& file, const Model& model,
                                 std::span<const RandomMask> masks);

}  // namespace decent::onnx
