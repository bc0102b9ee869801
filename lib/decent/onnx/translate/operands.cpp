#include "decent/onnx/translate/operands.h"

#include <algorithm>

#include "decent/core/script_text.h"

namespace decent::onnx {
namespace {

// -2^63, which cannot be written as one literal.
Expression with_top_bit_flipped(const Expression& expression) {
  return call("torch.bitwise_xor", expression, binary("-9223372036854775807", "-", 1));
}

}  // namespace

std::string optional_tensor(NodeContext& c, std::size_t input) {
  return c.has(input) ? c.tensor(input) : "None";
}

void set_like_input(NodeContext& c, const Expression& expression) {
  c.set(0, expression, c.type(0), c.rank(0));
}

std::int64_t axis_of(std::int64_t axis, std::optional<std::int64_t> rank) {
  if (!rank && axis >= -kMaxDimensions && axis < kMaxDimensions) return axis;
  if (!rank) throw Unsupported("has axis " + std::to_string(axis) + ", which no tensor has");
  // A scalar has the axes 0 and -1, as in PyTorch.
  const std::int64_t most = std::max<std::int64_t>(*rank, 1);
  if (axis < -most || axis >= most) {
    throw Unsupported("has axis " + std::to_string(axis) + " for a tensor of rank " +
                      std::to_string(*rank));
  }
  return axis < 0 ? axis + most : axis;
}

std::vector<std::int64_t> axes_of(std::vector<std::int64_t> axes,
                                  std::optional<std::int64_t> rank) {
  for (std::int64_t& axis : axes) axis = axis_of(axis, rank);
  return axes;
}

std::optional<std::int64_t> broadcast_rank(const NodeContext& c) {
  return broadcast_rank(c, c.inputs());
}

std::optional<std::int64_t> broadcast_rank(const NodeContext& c, std::size_t inputs) {
  std::int64_t rank = 0;
  for (std::size_t i = 0; i < inputs; ++i) {
    if (!c.rank(i)) return std::nullopt;
    rank = std::max(rank, *c.rank(i));
  }
  return rank;
}

Expression operand(NodeContext& c, std::size_t input, std::size_t other) {
  const auto number = c.known_scalar(input);
  const ElementType type = c.type(input);
  const bool alone = c.input(other).is_constant() || c.rank(other).value_or(0) == 0;
  if (!number || c.rank(input) != 0 || alone || c.type(other) != type) return c.tensor(input);
  if (is_floating(type)) return *number;
  const auto integer = c.known_integers(input);
  if (is_integer(type) && integer) return integer->front();
  return c.tensor(input);
}

Integer size_of_dimension(NodeContext& c, std::size_t input, std::int64_t axis) {
  const Value& value = c.input(input);
  if (value.rank == 0) throw Unsupported("goes along an axis of a scalar");
  const std::int64_t place = axis_of(axis, value.rank);
  if (value.dims && place >= 0) return Integer::of(value.dims->at(static_cast<std::size_t>(place)));
  return Integer::size(method(c.tensor(input), "size", place));
}

void check_keys_and_values(NodeContext& c, const Expression& keys, const Expression& values) {
  const auto size = [](const Expression& x, int axis) { return method(x, "size", axis); };
  const Expression has_heads = binary(binary(size(keys, 1), ">", 0), "and",  //
                                      binary(size(values, 1), ">", 0));
  const Expression same_time = binary(size(keys, 2), "==", size(values, 2));
  c.line("assert " + binary(has_heads, "and", same_time).text() +
         ", \"keys and values do not fit together\"");
}

Expression computable(NodeContext& c, std::size_t input) {
  const Expression x = c.tensor(input);
  return lacks_arithmetic(c.type(input)) ? method(x, "to", "torch.int64") : x;
}

Expression ordered(NodeContext& c, std::size_t input) {
  return unordered(computable(c, input), c.type(input));
}

Expression unordered(const Expression& expression, ElementType type) {
  return type == ElementType::uint64 ? with_top_bit_flipped(expression) : expression;
}

Expression in_type(NodeContext& c, const Expression& expression, ElementType type) {
  return lacks_arithmetic(type) ? method(expression, "to", c.dtype(type)) : expression;
}

}  // namespace decent::onnx
