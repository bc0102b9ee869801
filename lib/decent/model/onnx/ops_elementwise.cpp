// Arithmetic, element by element.

#include <algorithm>

#include "decent/model/onnx/names.h"
#include "decent/model/onnx/operators.h"

namespace decent::onnx {
namespace {

std::optional<std::int64_t> broadcast_rank(NodeContext& c) {
  std::int64_t rank = 0;
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    if (!c.rank(i)) return std::nullopt;
    rank = std::max(rank, *c.rank(i));
  }
  return rank;
}

std::optional<std::int64_t> known_arithmetic(char sign, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (sign) {
    case '+': return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case '-': return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    case '*': return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(result);
    // ONNX truncates, as C++ does.
    default: return b == 0 || b == -1 ? std::nullopt : std::optional(a / b);
  }
}

std::optional<Integer> arithmetic(char sign, const Integer& a, const Integer& b) {
  if (a.known && b.known) {
    const auto known = known_arithmetic(sign, *a.known, *b.known);
    return known ? std::optional(Integer::of(*known)) : std::nullopt;
  }
  // x // y rounds down, which is truncation for sizes.
  if (sign == '/' && !(a.not_negative && b.known && *b.known > 0)) return std::nullopt;
  const std::string text =
      "(" + a.text() + (sign == '/' ? " // " : std::string(" ") + sign + " ") + b.text() + ")";
  const bool not_negative = sign != '-' && a.not_negative && b.not_negative;
  return Integer{std::nullopt, text, not_negative};
}

// Arithmetic on shapes, without tensors. Whether that could be done.
bool set_shape_arithmetic(NodeContext& c, char sign) {
  const auto a = c.integers(0);
  const auto b = c.integers(1);
  if (!a || !b || c.type(0) != ElementType::int64) return false;
  if (a->size() != b->size() && a->size() != 1 && b->size() != 1) return false;
  std::vector<Integer> results;
  for (std::size_t i = 0; i < (a->size() == 1 ? b->size() : a->size()); ++i) {
    const auto result =
        arithmetic(sign, (*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
    if (!result) return false;
    results.push_back(*result);
  }
  c.set_integers(0, std::move(results), std::max(*c.rank(0), *c.rank(1)));
  return true;
}

// A scalar constant is written as a number beside a tensor of its own type, which then keeps it.
std::string operand(NodeContext& c, std::size_t input, std::size_t other) {
  const auto number = c.known_scalar(input);
  if (number && c.rank(input) == 0 && is_floating(c.type(input)) && !c.input(other).is_constant() &&
      c.rank(other).value_or(0) > 0) {
    return literal(*number);
  }
  return c.tensor(input);
}

void binary(NodeContext& c, char sign) {
  if (set_shape_arithmetic(c, sign)) return;
  const std::string a = operand(c, 0, 1);
  const std::string b = operand(c, 1, 0);
  const ElementType type = c.type(0);
  if (sign == '/' && !is_floating(type)) {
    c.set(0, "torch.div(" + a + ", " + b + ", rounding_mode=\"trunc\")", type, broadcast_rank(c));
  } else {
    c.set(0, a + " " + sign + " " + b, type, broadcast_rank(c));
  }
}

void add(NodeContext& c) { binary(c, '+'); }
void sub(NodeContext& c) { binary(c, '-'); }
void mul(NodeContext& c) { binary(c, '*'); }
void div(NodeContext& c) { binary(c, '/'); }

void identity(NodeContext& c) { c.set_value(0, c.input(0)); }

void neg(NodeContext& c) { c.set(0, "torch.neg(" + c.tensor(0) + ")", c.type(0), c.rank(0)); }

constexpr Operator kOperators[] = {
    {"Add", 7, add, Folding::broadcast},
    {"Div", 7, div, Folding::broadcast},
    {"Identity", 1, identity},
    {"Mul", 7, mul, Folding::broadcast},
    {"Neg", 6, neg, Folding::broadcast},
    {"Sub", 7, sub, Folding::broadcast},
};

}  // namespace

std::span<const Operator> elementwise_operators() { return kOperators; }

}  // namespace decent::onnx
