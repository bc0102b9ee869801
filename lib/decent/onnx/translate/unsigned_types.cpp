#include "decent/onnx/translate/unsigned_types.h"

namespace decent::onnx {
namespace {

// -2^63, which cannot be written as one literal.
std::string with_top_bit_flipped(const std::string& expression) {
  return "torch.bitwise_xor(" + expression + ", -9223372036854775807 - 1)";
}

}  // namespace

std::string computable(NodeContext& c, std::size_t input) {
  const std::string text = c.tensor(input);
  return lacks_arithmetic(c.type(input)) ? text + ".to(torch.int64)" : text;
}

std::string ordered(NodeContext& c, std::size_t input) {
  return unordered(computable(c, input), c.type(input));
}

std::string unordered(const std::string& expression, ElementType type) {
  return type == ElementType::uint64 ? with_top_bit_flipped(expression) : expression;
}

std::string in_type(NodeContext& c, const std::string& expression, ElementType type) {
  return lacks_arithmetic(type) ? "(" + expression + ").to(" + c.dtype(type) + ")" : expression;
}

}  // namespace decent::onnx
