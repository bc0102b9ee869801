#include "decent/onnx/translate/unsigned_types.h"

namespace decent::onnx {
namespace {

// -2^63, which cannot be written as one literal.
Expression with_top_bit_flipped(const Expression& expression) {
  return call("torch.bitwise_xor", expression, binary("-9223372036854775807", "-", 1));
}

}  // namespace

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
