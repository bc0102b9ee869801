#pragma once
// What operators do with their inputs, as far as this distinguishes weights from constants.

#include <cstddef>
#include <string>
#include <string_view>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// What an operator uses an input for.
enum class Slot {
  weight,      // only used by modules as a weight: Conv, MatMul, LayerNormalization ..
  statistics,  // running mean or variance of BatchNormalization
  arithmetic,  // added or multiplied: a weight or a constant
  scaling,     // subtracted or a divisor: statistics of the data rather than a weight
  function,    // of a function of its elements or size, which modules often apply to parameters
  view,        // the outputs hold the input's elements: look further
  shape,       // only the input's shape is read
  other,
};

Slot slot_of(const Node& node, std::size_t input);

/// The module's usual name for a tensor in that place: "weight", "bias", "weight_hh".
std::string_view member_name(const Node& node, std::size_t input);

}  // namespace decent::onnx
