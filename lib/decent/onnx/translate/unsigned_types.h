#pragma once
// PyTorch stores uint16, uint32 and uint64 but does not compute in them. In int64 sums, products
// and bits are the same modulo 2^n; what orders or divides needs care with uint64 above 2^63.

#include "decent/onnx/translate/node_context.h"

namespace decent::onnx {

constexpr bool lacks_arithmetic(ElementType type) {
  return type == ElementType::uint16 || type == ElementType::uint32 || type == ElementType::uint64;
}

/// The input, as int64 where PyTorch does not compute in its type.
Expression computable(NodeContext& c, std::size_t input);

/// The same, such that the order of uint64 values above 2^63 is that of int64; undone by itself.
Expression ordered(NodeContext& c, std::size_t input);
Expression unordered(const Expression& expression, ElementType type);

/// `expression`, computed of computable() inputs, in the type that it should have.
Expression in_type(NodeContext& c, const Expression& expression, ElementType type);

}  // namespace decent::onnx
