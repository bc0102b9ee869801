#pragma once
// Checks how the parts of a model fit together.

#include "decent/onnx/format/input.h"
#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// Throws UserError if the IR version or an operator set cannot be read, if a value is made twice,
/// used before it is made or never made, if initializers or attributes of a node share a name, or
/// if a function is defined twice, calls itself, or has more than kMaxNodes nodes when calls are
/// expanded.
void check_model(Input& input, const Model& model);

}  // namespace decent::onnx
