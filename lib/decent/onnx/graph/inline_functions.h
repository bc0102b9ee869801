#pragma once
// Replaces calls of functions that a model defines by the functions.

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// A copy of `model` in which every call of one of its functions, in nested graphs too, is replaced
/// by the function's nodes, whose names the call's name makes unique. Throws UserError if the graph
/// becomes too large.
Model inline_functions(const Model& model);

}  // namespace decent::onnx
