#pragma once
// What operators of several families ask of a node's inputs.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decent/onnx/translate/node_context.h"

namespace decent::onnx {

/// An input that may be left out: "None" then.
std::string optional_tensor(NodeContext& c, std::size_t input);

/// Output 0 is `expression`, of the type and rank of input 0.
void set_like_input(NodeContext& c, const Expression& expression);

/// The axis counted from the front where the rank is known; else as it is, which PyTorch's
/// functions take too. Unsupported where it is outside of the rank.
std::int64_t axis_of(std::int64_t axis, std::optional<std::int64_t> rank);
std::vector<std::int64_t> axes_of(std::vector<std::int64_t> axes, std::optional<std::int64_t> rank);

/// The rank that inputs broadcast to, where theirs are known.
std::optional<std::int64_t> broadcast_rank(const NodeContext& c);
/// The same of the first `inputs` inputs.
std::optional<std::int64_t> broadcast_rank(const NodeContext& c, std::size_t inputs);

/// An input beside a tensor of the same type: a scalar constant as a number, which then takes the
/// tensor's type.
Expression operand(NodeContext& c, std::size_t input, std::size_t other);

/// Size of a dimension, e.g. "x.size(0)", or a number where it is the same in every run.
Integer size_of_dimension(NodeContext& c, std::size_t input, std::int64_t axis);

/// A line that ends in an error where keys and values, [batch, heads, time, size], do not fit
/// together: PyTorch's scaled_dot_product_attention would divide by 0, which ends the process.
void check_keys_and_values(NodeContext& c, const Expression& keys, const Expression& values);

}  // namespace decent::onnx
