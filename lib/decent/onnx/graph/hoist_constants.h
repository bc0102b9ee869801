#pragma once
// Finds constants that may be weights, because some tools write every tensor as a Constant node.

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// Turns Constant nodes that hold floating-point tensors into initializers of the same name, so
/// that the search for weights finds them. The functions of `model` must be inlined. A Constant
/// node of a function then appears once for each call, but becomes a single initializer, because it
/// is one tensor of the file. Other constants stay nodes.
void hoist_constants(Model& model);

}  // namespace decent::onnx
