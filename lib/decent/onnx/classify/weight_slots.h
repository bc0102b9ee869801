#pragma once
// What operators do with their inputs, as far as it tells weights from constants.

#include <cstddef>
#include <string>
#include <string_view>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// What an input of an operator is.
enum class Slot {
  weight,      // only ever a weight of a module: of Conv, MatMul, LayerNormalization ..
  statistics,  // running mean or variance of BatchNormalization
  arithmetic,  // added or multiplied: a weight or a constant
  scaling,     // subtracted or divided by: rather statistics of the data
  function,    // of its elements or of their size: what modules do with parameters before they use
               // them
  view,        // the outputs hold the input's elements: look further
  shape,       // only the input's shape is read
  other,
};

Slot slot_of(const Node& node, std::size_t input);

/// What a module calls a tensor in that place: "weight", "bias", "weight_hh".
std::string_view member_name(const Node& node, std::size_t input);

}  // namespace decent::onnx
