#pragma once
// PyTorch stores uint16, uint32 and uint64 but does not compute in them. In int64, sums, products
// and bits are the same modulo 2^n; comparisons and divisions need care with uint64 above 2^63.

#include "decent/onnx/translate/node_context.h"

namespace decent::onnx {

constexpr bool lacks_arithmetic(ElementType type) {
  return type == ElementType::uint16 || type == ElementType::uint32 || type == ElementType::uint64;
}

/// The input, converted to int64 if PyTorch does not compute in its type.
Expression computable(NodeContext& c, std::size_t input);

/// The same, mapped so that int64 orders uint64 values above 2^63 correctly; applying it twice
/// undoes it.
Expression ordered(NodeContext& c, std::size_t input);
Expression unordered(const Expression& expression, ElementType type);

/// `expression`, which was computed from computable() inputs, converted to `type`.
Expression in_type(NodeContext& c, const Expression& expression, ElementType type);

}  // namespace decent::onnx
