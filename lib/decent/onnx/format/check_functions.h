#pragma once
// Functions that a model brings along.

#include "decent/onnx/format/input.h"
#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// Functions calling one another, at most this deep.
inline constexpr int kMaxCallDepth = 100;

/// Throws UserError where a function is there twice, calls itself, refers to an attribute that it
/// does not have, stands too deep, or the model has more than kMaxNodes nodes when calls are
/// expanded.
void check_functions(const Input& input, const Model& model);

}  // namespace decent::onnx
