#pragma once
// Functions on a node's inputs that operators of several families share.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decent/onnx/translate/node_context.h"

namespace decent::onnx {

/// An optional input: "None" if it is left out.
std::string optional_tensor(NodeContext& c, std::size_t input);

/// Sets output 0 to `expression`, with the type and rank of input 0.
void set_like_input(NodeContext& c, const Expression& expression);

/// The axis counted from the front if the rank is known; otherwise unchanged, as PyTorch's
/// functions also take it. Throws Unsupported if it is outside of the rank.
std::int64_t axis_of(std::int64_t axis, std::optional<std::int64_t> rank);
std::vector<std::int64_t> axes_of(std::vector<std::int64_t> axes, std::optional<std::int64_t> rank);

/// The rank to which the inputs broadcast, if their ranks are known.
std::optional<std::int64_t> broadcast_rank(const NodeContext& c);
/// The same for the first `inputs` inputs.
std::optional<std::int64_t> broadcast_rank(const NodeContext& c, std::size_t inputs);

/// An input that is combined with a tensor of the same type: a scalar constant becomes a number,
/// which takes the tensor's type.
Expression operand(NodeContext& c, std::size_t input, std::size_t other);

/// The size of a dimension, e.g. "x.size(0)", or a number if it is the same in every run.
Integer size_of_dimension(NodeContext& c, std::size_t input, std::int64_t axis);

/// Adds a line that raises an error if keys and values, [batch, heads, time, size], do not fit
/// together, because PyTorch's scaled_dot_product_attention would divide by 0, which ends the
/// process.
void check_keys_and_values(NodeContext& c, const Expression& keys, const Expression& values);

// PyTorch stores uint16, uint32 and uint64 but does not compute in them. In int64, sums, products
// and bits are the same modulo 2^n; comparisons and divisions need care with uint64 above 2^63.

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
