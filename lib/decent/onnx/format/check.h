#pragma once
// How the parts of a model fit together.

#include "decent/onnx/format/input.h"
#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// Throws UserError where IR version or operator sets are not read, a value is made twice, used
/// before it is made or made by nothing, initializers or attributes of a node share a name, a
/// function is there twice, calls itself, or has more than kMaxNodes nodes when calls are
/// expanded.
void check_model(Input& input, const Model& model);

}  // namespace decent::onnx
