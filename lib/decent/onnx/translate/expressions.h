#pragma once
// Pieces of TorchScript that operators of several families write.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decent/onnx/translate/node_context.h"

namespace decent::onnx {

/// "a, b".
std::string comma_separated(const std::vector<std::string>& parts);

/// A List[int]: "[1, x.size(0)]"; an empty one says its type.
std::string list_text(const std::vector<std::int64_t>& values);
std::string list_text(const std::vector<Integer>& values);

/// An input that may be left out: "None" then.
std::string optional_tensor(NodeContext& c, std::size_t input);

/// "True" or "False".
std::string bool_text(bool value);

/// Output 0 is `expression`, of the type and rank of input 0.
void set_like_input(NodeContext& c, const std::string& expression);

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
std::string operand(NodeContext& c, std::size_t input, std::size_t other);

/// Size of a dimension, e.g. "x.size(0)", or a number where it is the same in every run.
Integer size_of_dimension(NodeContext& c, std::size_t input, std::int64_t axis);

/// A line that ends in an error where keys and values, [batch, heads, time, size], do not fit
/// together: PyTorch's scaled_dot_product_attention would divide by 0, which ends the process.
void check_keys_and_values(NodeContext& c, const std::string& keys, const std::string& values);

}  // namespace decent::onnx
