#pragma once
// Checks the functions that a model defines.

#include "decent/onnx/format/input.h"
#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// The greatest depth of functions that call one another.
inline constexpr int kMaxCallDepth = 100;

/// Throws UserError if a function is defined twice, calls itself, refers to an attribute that it
/// does not have or is nested too deep, or if the model has more than kMaxNodes nodes when calls
/// are expanded.
void check_functions(const Input& input, const Model& model);

}  // namespace decent::onnx
