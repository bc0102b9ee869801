// Operators on the bits of integers.

#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

void set_bitwise(NodeContext& c, const std::string& function) {
  const Expression result = call(function, computable(c, 0), computable(c, 1));
  c.set(0, in_type(c, result, c.type(0)), c.type(0), broadcast_rank(c));
}

void bitwise_and(NodeContext& c) { set_bitwise(c, "torch.bitwise_and"); }
void bitwise_or(NodeContext& c) { set_bitwise(c, "torch.bitwise_or"); }
void bitwise_xor(NodeContext& c) { set_bitwise(c, "torch.bitwise_xor"); }

void bitwise_not(NodeContext& c) {
  const Expression result = call("torch.bitwise_not", computable(c, 0));
  c.set(0, in_type(c, result, c.type(0)), c.type(0), c.rank(0));
}

// Shifts by more bits than a type has give 0, or -1 for negative numbers, as ONNX 28 defines.
void bit_shift(NodeContext& c) {
  const std::string direction = c.string_or("direction", "");
  if (direction == "LEFT") return set_bitwise(c, "torch.bitwise_left_shift");
  if (direction != "RIGHT")
    throw Unsupported("has direction '" + direction + "'; LEFT and RIGHT are");
  const bool top_bit_counts = c.type(0) == ElementType::uint64;
  set_bitwise(c, top_bit_counts ? c.helper("_unsigned_shift_right") : "torch.bitwise_right_shift");
}

constexpr auto kStops = Gradient::stops;

constexpr Operator kBitwiseOperators[] = {
    {"BitShift", 11, bit_shift, Folding::broadcast, kStops},
    {"BitwiseAnd", 18, bitwise_and, Folding::broadcast, kStops},
    {"BitwiseNot", 18, bitwise_not, Folding::broadcast, kStops},
    {"BitwiseOr", 18, bitwise_or, Folding::broadcast, kStops},
    {"BitwiseXor", 18, bitwise_xor, Folding::broadcast, kStops},
};

}  // namespace

std::span<const Operator> bitwise_operators() { return kBitwiseOperators; }

}  // namespace decent::onnx
