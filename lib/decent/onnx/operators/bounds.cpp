// Clip, and elementwise functions of any number of tensors: Min, Max, Mean, Sum.

#include "decent/core/script_text.h"
#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"
#include "decent/onnx/translate/shape_arithmetic.h"

namespace decent::onnx {
namespace {

// An input that is a constant scalar, as a number of its type.
std::optional<Expression> number(const NodeContext& c, std::size_t input) {
  const auto scalar = c.known_scalar(input);
  if (!scalar) return std::nullopt;
  if (is_floating(c.type(input))) return *scalar;
  const auto integers = c.known_integers(input);
  return integers ? std::optional<Expression>(integers->front()) : std::nullopt;
}

void clip_by(NodeContext& c, const std::optional<Expression>& least,
             const std::optional<Expression>& most) {
  if (!least && !most) return c.set_value(0, c.input(0));
  Arguments arguments(ordered(c, 0));
  if (least) arguments.add(keyword("min", *least));
  if (most) arguments.add(keyword("max", *most));
  const ElementType type = c.type(0);
  const Expression clamped = call("torch.clamp", arguments);
  c.set(0, in_type(c, unordered(clamped, type), type), type, c.rank(0));
}

void clip_by_attributes(NodeContext& c) {
  const auto bound = [&](const char* name) {
    return c.has_attribute(name) ? std::optional<Expression>(c.float_or(name, 0)) : std::nullopt;
  };
  clip_by(c, bound("min"), bound("max"));
}

// torch.clamp takes two numbers or two tensors.
void clip(NodeContext& c) {
  const bool numbers =
      !lacks_arithmetic(c.type(0)) && (!c.has(1) || number(c, 1)) && (!c.has(2) || number(c, 2));
  const auto bound = [&](std::size_t input) -> std::optional<Expression> {
    if (!c.has(input)) return std::nullopt;
    return numbers ? number(c, input) : ordered(c, input);
  };
  clip_by(c, bound(1), bound(2));
}

// For a tensor and a number: clamp, which gives the gradient to the tensor if the two are equal.
std::optional<Expression> clamped(NodeContext& c, const char* bound) {
  if (c.inputs() != 2 || !is_floating(c.type(0))) return std::nullopt;
  for (const std::size_t tensor : {0u, 1u}) {
    const auto limit = number(c, 1 - tensor);
    if (!limit || c.input(tensor).is_constant()) continue;
    if (!c.rank(tensor) || c.rank(1 - tensor) > c.rank(tensor)) continue;
    return call("torch.clamp", c.tensor(tensor), keyword(bound, *limit));
  }
  return std::nullopt;
}

// TorchScript's compiler calls itself for every nested expression, and for every operation on which
// a result depends. So more inputs than this go through a loop.
constexpr std::size_t kMaxNested = 100;

Expression list_of_inputs(NodeContext& c) {
  Arguments inputs;
  for (std::size_t i = 0; i < c.inputs(); ++i) inputs.add(ordered(c, i));
  return list(inputs);
}

Expression chained(NodeContext& c, const std::string& function) {
  if (c.inputs() > kMaxNested)
    return unordered(call(c.helper("_" + function), list_of_inputs(c)), c.type(0));
  Expression chain = ordered(c, 0);
  for (std::size_t i = 1; i < c.inputs(); ++i)
    chain = call("torch." + function, chain, ordered(c, i));
  return unordered(chain, c.type(0));
}

void extreme(NodeContext& c, Arithmetic kind, const char* function, const char* bound) {
  if (c.inputs() == 1) return c.set_value(0, c.input(0));
  if (c.inputs() == 2 && set_shape_arithmetic(c, kind)) return;
  const auto short_form = clamped(c, bound);
  const Expression result = short_form ? *short_form : chained(c, function);
  c.set(0, in_type(c, result, c.type(0)), c.type(0), broadcast_rank(c));
}

void min(NodeContext& c) { extreme(c, Arithmetic::minimum, "minimum", "max"); }

void max(NodeContext& c) { extreme(c, Arithmetic::maximum, "maximum", "min"); }

Expression added(NodeContext& c) {
  if (c.inputs() > kMaxNested) return call(c.helper("_sum"), list_of_inputs(c));
  Expression total = c.tensor(0);
  for (std::size_t i = 1; i < c.inputs(); ++i) total = binary(total, "+", c.tensor(i));
  return total;
}

void sum(NodeContext& c) {
  if (c.inputs() == 1) return c.set_value(0, c.input(0));
  c.set(0, added(c), c.type(0), broadcast_rank(c));
}

void mean(NodeContext& c) {
  if (c.inputs() == 1) return c.set_value(0, c.input(0));
  c.set(0, binary(added(c), "/", static_cast<double>(c.inputs())), c.type(0), broadcast_rank(c));
}

constexpr Operator kBoundsOperators[] = {
    {"Clip", 6, clip_by_attributes, Folding::broadcast, Gradient::flows, 10},
    {"Clip", 11, clip, Folding::broadcast},
    {"Max", 8, max, Folding::broadcast},
    {"Mean", 8, mean, Folding::broadcast},
    {"Min", 8, min, Folding::broadcast},
    {"Sum", 8, sum, Folding::broadcast},
};

}  // namespace

std::span<const Operator> bounds_operators() { return kBoundsOperators; }

}  // namespace decent::onnx
