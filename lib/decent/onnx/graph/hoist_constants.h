#pragma once
// Constants that may be weights: some tools write every tensor as a Constant node.

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// Makes initializers of the same name out of Constant nodes that hold floating-point tensors, so
/// that whatever looks for weights finds them. `model` is one whose functions are inlined: a
/// Constant node of a function stands in it once for each call and becomes one initializer, as it
/// is one tensor of the file. Other constants stay nodes.
void hoist_constants(Model& model);

}  // namespace decent::onnx
