#pragma once
// Functions that a model brings along, put in place of their calls.

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// A copy of `model` in which every call of one of its functions, in nested graphs too, is replaced
/// by the function's nodes, their names made unique by the call's. Throws UserError where that
/// makes the graph too large.
Model inline_functions(const Model& model);

}  // namespace decent::onnx
