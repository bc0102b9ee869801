#include "decent/onnx/translate/shape_arithmetic.h"

#include <algorithm>

namespace decent::onnx {
namespace {

using Result = std::optional<std::int64_t>;

// Whether C++ can divide, which rounds as ONNX does; a division by -1 could overflow.
bool can_divide(std::int64_t divisor) { return divisor != 0 && divisor != -1; }

std::int64_t floor_remainder(std::int64_t a, std::int64_t b) {
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

Result compute(Arithmetic arithmetic, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (arithmetic) {
    case Arithmetic::add:
      return __builtin_add_overflow(a, b, &result) ? Result() : result;
    case Arithmetic::subtract:
      return __builtin_sub_overflow(a, b, &result) ? Result() : result;
    case Arithmetic::multiply:
      return __builtin_mul_overflow(a, b, &result) ? Result() : result;
    case Arithmetic::divide:
      return can_divide(b) ? Result(a / b) : Result();
    case Arithmetic::remainder:
      return can_divide(b) ? Result(a % b) : Result();
    case Arithmetic::floor_remainder:
      return can_divide(b) ? Result(floor_remainder(a, b)) : Result();
    case Arithmetic::minimum:
      return std::min(a, b);
    case Arithmetic::maximum:
      return std::max(a, b);
  }
  return std::nullopt;
}

Integer infix(const Integer& a, const char* sign, const Integer& b, bool not_negative) {
  return Integer::computed(binary(a, sign, b), not_negative);
}

std::optional<Integer> expression(Arithmetic arithmetic, const Integer& a, const Integer& b) {
  const bool both = a.not_negative && b.not_negative;
  // TorchScript rounds quotients down, which is truncation for numbers that are not negative.
  const bool positive_divisor = b.known && *b.known > 0;
  const bool plain_division = a.not_negative && positive_divisor;
  switch (arithmetic) {
    case Arithmetic::add:
      return infix(a, "+", b, both);
    case Arithmetic::subtract:
      return infix(a, "-", b, false);
    case Arithmetic::multiply:
      return infix(a, "*", b, both);
    case Arithmetic::divide:
      return plain_division ? std::optional(infix(a, "//", b, true)) : std::nullopt;
    case Arithmetic::remainder:
      return plain_division ? std::optional(infix(a, "%", b, true)) : std::nullopt;
    case Arithmetic::floor_remainder:
      return positive_divisor ? std::optional(infix(a, "%", b, true)) : std::nullopt;
    case Arithmetic::minimum:
      return Integer::computed(call("min", a, b), both);
    case Arithmetic::maximum:
      return Integer::computed(call("max", a, b), a.not_negative || b.not_negative);
  }
  return std::nullopt;
}

std::optional<Integer> combine(Arithmetic arithmetic, const Integer& a, const Integer& b) {
  if (!a.known || !b.known) return expression(arithmetic, a, b);
  const Result known = compute(arithmetic, *a.known, *b.known);
  return known ? std::optional(Integer::of(*known)) : std::nullopt;
}

}  // namespace

bool set_shape_arithmetic(NodeContext& c, Arithmetic arithmetic) {
  const auto a = c.integers(0);
  const auto b = c.integers(1);
  if (!a || !b || c.type(0) != ElementType::int64) return false;
  if (a->size() != b->size() && a->size() != 1 && b->size() != 1) return false;
  std::vector<Integer> results;
  for (std::size_t i = 0; i < (a->size() == 1 ? b->size() : a->size()); ++i) {
    const auto result =
        combine(arithmetic, (*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
    if (!result) return false;
    results.push_back(*result);
  }
  c.set_integers(0, std::move(results), std::max(*c.rank(0), *c.rank(1)));
  return true;
}

bool set_shape_negation(NodeContext& c) {
  const auto integers = c.integers(0);
  if (!integers || c.type(0) != ElementType::int64) return false;
  std::vector<Integer> results;
  for (const Integer& each : *integers) {
    const auto result = combine(Arithmetic::subtract, Integer::of(0), each);
    if (!result) return false;
    results.push_back(*result);
  }
  c.set_integers(0, std::move(results), *c.rank(0));
  return true;
}

}  // namespace decent::onnx
