// Arithmetic of two tensors, element by element, and functions of each element.

#include <algorithm>

#include "decent/core/script_text.h"
#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"
#include "decent/onnx/translate/shape_arithmetic.h"

namespace decent::onnx {
namespace {

void set_broadcast(NodeContext& c, const Expression& expression) {
  c.set(0, in_type(c, expression, c.type(0)), c.type(0), broadcast_rank(c));
}

// "a + b", with a number in place of a scalar constant if PyTorch computes in the type.
void set_infix(NodeContext& c, const char* sign) {
  if (lacks_arithmetic(c.type(0))) {
    set_broadcast(c, binary(computable(c, 0), sign, computable(c, 1)));
  } else {
    set_broadcast(c, binary(operand(c, 0, 1), sign, operand(c, 1, 0)));
  }
}

void add(NodeContext& c) {
  if (!set_shape_arithmetic(c, Arithmetic::add)) set_infix(c, "+");
}

void sub(NodeContext& c) {
  if (set_shape_arithmetic(c, Arithmetic::subtract)) return;
  const Expression from = operand(c, 0, 1);
  const bool from_number = from.text() != c.tensor(0) && !lacks_arithmetic(c.type(0));
  if (!from_number) return set_infix(c, "-");
  set_broadcast(c, call("torch.rsub", c.tensor(1), from));
}

void mul(NodeContext& c) {
  if (!set_shape_arithmetic(c, Arithmetic::multiply)) set_infix(c, "*");
}

// Whether the smallest integer of a type in which processors compute may be divided by -1.
bool may_overflow(NodeContext& c) {
  if (c.type(0) != ElementType::int32 && c.type(0) != ElementType::int64) return false;
  const auto divisor = c.known_integers(1);
  return !divisor || std::find(divisor->begin(), divisor->end(), -1) != divisor->end();
}

// ONNX truncates quotients of integers.
void div(NodeContext& c) {
  if (set_shape_arithmetic(c, Arithmetic::divide)) return;
  if (is_floating(c.type(0))) return set_infix(c, "/");
  const Arguments operands(computable(c, 0), computable(c, 1));
  if (c.type(0) == ElementType::uint64) {
    set_broadcast(c, call(c.helper("_unsigned_divide"), operands));
  } else if (may_overflow(c)) {
    set_broadcast(c, call(c.helper("_truncated_quotient"), operands));
  } else {
    set_broadcast(c, call("torch.div", operands, keyword("rounding_mode", "\"trunc\"")));
  }
}

void mod(NodeContext& c) {
  const bool truncates = c.int_or("fmod", 0) != 0;
  const Arithmetic kind = truncates ? Arithmetic::remainder : Arithmetic::floor_remainder;
  if (set_shape_arithmetic(c, kind)) return;
  const std::string function = c.type(0) == ElementType::uint64 ? c.helper("_unsigned_remainder")
                               : truncates                      ? "torch.fmod"
                                                                : "torch.remainder";
  set_broadcast(c, call(function, computable(c, 0), computable(c, 1)));
}

// The exponent as a number, for which PyTorch is faster, if that changes neither the type nor the
// shape.
std::optional<Expression> exponent_number(NodeContext& c) {
  const auto number = c.known_scalar(1);
  if (!number || !c.rank(0) || c.rank(1) > c.rank(0)) return std::nullopt;
  if (is_floating(c.type(0))) return *number;
  const auto integer = c.known_integers(1);
  if (!integer) return std::nullopt;
  return integer->front();
}

// The result has the type of the base.
void pow(NodeContext& c) {
  const ElementType type = c.type(0);
  const auto number = exponent_number(c);
  const Expression power = call("torch.pow", computable(c, 0), number ? *number : computable(c, 1));
  const bool keeps = number || c.type(1) == type || (is_floating(type) && !is_floating(c.type(1)));
  const bool converts = !keeps || lacks_arithmetic(type);
  c.set(0, converts ? method(power, "to", c.dtype(type)) : power, type, broadcast_rank(c));
}

void identity(NodeContext& c) { c.set_value(0, c.input(0)); }

// PyTorch's function has the same name.
void function_of_name(NodeContext& c) {
  std::string name = c.node().op_type;
  for (char& letter : name) letter = static_cast<char>(std::tolower(letter));
  set_like_input(c, call("torch." + name, c.tensor(0)));
}

void neg(NodeContext& c) {
  if (!set_shape_negation(c)) function_of_name(c);
}

void abs(NodeContext& c) {
  if (lacks_arithmetic(c.type(0))) return identity(c);
  function_of_name(c);
}

void sign(NodeContext& c) {
  if (!lacks_arithmetic(c.type(0))) return function_of_name(c);
  set_like_input(c, method(binary(computable(c, 0), "!=", 0), "to", c.dtype(c.type(0))));
}

void erf(NodeContext& c) {
  if (is_floating(c.type(0))) return function_of_name(c);
  set_like_input(c, method(call("torch.erf", computable(c, 0)), "to", c.dtype(c.type(0))));
}

// This is no operator of ONNX, but tf2onnx leaves TensorFlow's Erfc in the file, as for the GELU of
// Keras.
void erfc(NodeContext& c) {
  if (!is_floating(c.type(0))) throw Unsupported("takes elements that are not floating-point");
  function_of_name(c);
}

constexpr Operator kElementwiseOperators[] = {
    {"Abs", 6, abs, Folding::broadcast},
    {"Acos", 7, function_of_name, Folding::broadcast},
    {"Acosh", 9, function_of_name, Folding::broadcast},
    {"Add", 7, add, Folding::broadcast},
    {"Asin", 7, function_of_name, Folding::broadcast},
    {"Asinh", 9, function_of_name, Folding::broadcast},
    {"Atan", 7, function_of_name, Folding::broadcast},
    {"Atanh", 9, function_of_name, Folding::broadcast},
    {"Ceil", 6, function_of_name, Folding::broadcast, Gradient::stops},
    {"Cos", 7, function_of_name, Folding::broadcast},
    {"Cosh", 9, function_of_name, Folding::broadcast},
    {"Div", 7, div, Folding::broadcast},
    {"Erf", 9, erf, Folding::broadcast},
    {"Erfc", 9, erfc, Folding::broadcast},
    {"Exp", 6, function_of_name, Folding::broadcast},
    {"Floor", 6, function_of_name, Folding::broadcast, Gradient::stops},
    {"Identity", 1, identity},
    {"Log", 6, function_of_name, Folding::broadcast},
    {"Mod", 10, mod, Folding::broadcast},
    {"Mul", 7, mul, Folding::broadcast},
    {"Neg", 6, neg, Folding::broadcast},
    {"Pow", 7, pow, Folding::broadcast},
    {"Reciprocal", 6, function_of_name, Folding::broadcast},
    {"Round", 11, function_of_name, Folding::broadcast,
     Gradient::stops},  // halves to even, as ONNX
    {"Sign", 9, sign, Folding::broadcast, Gradient::stops},
    {"Sin", 7, function_of_name, Folding::broadcast},
    {"Sinh", 9, function_of_name, Folding::broadcast},
    {"Sqrt", 6, function_of_name, Folding::broadcast},
    {"Sub", 7, sub, Folding::broadcast},
    {"Tan", 7, function_of_name, Folding::broadcast},
    {"Tanh", 6, function_of_name, Folding::broadcast},
};

}  // namespace

std::span<const Operator> elementwise_operators() { return kElementwiseOperators; }

}  // namespace decent::onnx
