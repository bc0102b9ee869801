#pragma once
// Arithmetic on integers that are known one by one: shapes, computed without tensors.

#include "decent/onnx/translate/node_context.h"

namespace decent::onnx {

enum class Arithmetic {
  add,
  subtract,
  multiply,
  divide,
  floor_remainder,
  remainder,
  minimum,
  maximum
};

/// Sets output 0 if inputs 0 and 1 are int64 integers known one by one, and the result can be
/// written in the same way. Returns whether it did.
bool set_shape_arithmetic(NodeContext& c, Arithmetic arithmetic);

/// The same for output 0 = -input 0.
bool set_shape_negation(NodeContext& c);

}  // namespace decent::onnx
