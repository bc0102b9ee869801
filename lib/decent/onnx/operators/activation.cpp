// Activation functions: PyTorch's own wherever it has one, because of its gradient and speed.

#include <cmath>

#include "decent/core/script_text.h"
#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

template <typename... More>
void set_call(NodeContext& c, const char* function, const More&... arguments) {
  set_like_input(c, call(function, c.tensor(0), arguments...));
}

// Attributes are float32; PyTorch's own constants are double.
bool is_about(double attribute, double constant) {
  return std::abs(attribute - constant) <= 1e-6 * std::abs(constant);
}

void relu(NodeContext& c) { set_call(c, "torch.relu"); }
void sigmoid(NodeContext& c) { set_call(c, "torch.sigmoid"); }
void hard_swish(NodeContext& c) { set_call(c, "torch.hardswish"); }
void softplus(NodeContext& c) { set_call(c, "torch.softplus"); }
void mish(NodeContext& c) { set_call(c, "torch.mish"); }

void leaky_relu(NodeContext& c) { set_call(c, "torch.leaky_relu", c.float_or("alpha", 0.01)); }
void elu(NodeContext& c) { set_call(c, "torch.elu", c.float_or("alpha", 1.0)); }
void celu(NodeContext& c) { set_call(c, "torch.celu", c.float_or("alpha", 1.0)); }

void selu(NodeContext& c) {
  const double alpha = c.float_or("alpha", 1.67326319217681884765625);
  const double gamma = c.float_or("gamma", 1.05070102214813232421875);
  if (is_about(alpha, 1.6732632423543772) && is_about(gamma, 1.0507009873554805))
    return set_call(c, "torch.selu");
  set_call(c, "torch.elu", alpha, gamma);
}

void hard_sigmoid(NodeContext& c) {
  const double alpha = c.float_or("alpha", 0.2);
  const double beta = c.float_or("beta", 0.5);
  if (is_about(alpha, 1.0 / 6.0) && beta == 0.5) return set_call(c, "torch.hardsigmoid");
  const Expression line = binary(binary(c.tensor(0), "*", alpha), "+", beta);
  set_like_input(c, call("torch.clamp", line, 0.0, 1.0));
}

void softsign(NodeContext& c) {
  const Expression x = c.tensor(0);
  set_like_input(c, binary(x, "/", binary(call("torch.abs", x), "+", 1.0)));
}

void gelu(NodeContext& c) {
  const std::string approximate = c.string_or("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    throw Unsupported("has approximate '" + approximate + "'; none and tanh are");
  set_call(c, "torch.gelu", keyword("approximate", string_literal(approximate)));
}

Expression swish_of(const Expression& x, double alpha) {
  if (alpha == 1.0) return call("torch.silu", x);
  return binary(x, "*", call("torch.sigmoid", binary(x, "*", alpha)));
}

void swish(NodeContext& c) { set_like_input(c, swish_of(c.tensor(0), c.float_or("alpha", 1.0))); }

void swiglu(NodeContext& c) {
  set_like_input(c, binary(swish_of(c.tensor(0), c.float_or("alpha", 1.0)), "*", c.tensor(1)));
}

void thresholded_relu(NodeContext& c) {
  set_call(c, "torch.threshold", c.float_or("alpha", 1.0), 0.0);
}

// For types and biases that PyTorch's shrink functions do not have.
Expression general_shrink(NodeContext& c, double lambd, double bias) {
  const Expression x = c.variable("shrunk", computable(c, 0));
  const Expression from_above =
      call("torch.where", binary(x, ">", lambd), binary(x, "-", bias), call("torch.zeros_like", x));
  const Expression shrunk =
      call("torch.where", binary(x, "<", -lambd), binary(x, "+", bias), from_above);
  return is_floating(c.type(0)) ? shrunk : method(shrunk, "to", c.dtype(c.type(0)));
}

void shrink(NodeContext& c) {
  const double lambd = c.float_or("lambd", 0.5);
  const double bias = c.float_or("bias", 0.0);
  const bool usual = is_floating(c.type(0)) && lambd >= 0;
  if (usual && bias == 0) return set_call(c, "torch.hardshrink", lambd);
  if (usual && bias == lambd) return set_call(c, "torch.softshrink", lambd);
  set_like_input(c, general_shrink(c, lambd, bias));
}

// One slope, or one per channel: reshaped to the shapes that torch.prelu takes.
std::optional<Expression> slope_of_channels(NodeContext& c) {
  const Value& slope = c.input(1);
  if (!slope.dims || !c.rank(0)) return std::nullopt;
  const std::vector<std::int64_t>& dims = *slope.dims;
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  const Expression given = c.tensor(1);
  const Expression flat = dims.size() == 1 ? given : method(given, "reshape", -1);
  if (count == 1) return flat;
  // (C, 1, 1) beside (N, C, H, W); without spatial axes (C).
  const std::int64_t behind_batch = *c.rank(0) - 1;
  const bool is_channels =
      static_cast<std::int64_t>(dims.size()) == behind_batch && dims.front() == count;
  return is_channels ? std::optional(flat) : std::nullopt;
}

void prelu(NodeContext& c) {
  if (const auto slope = slope_of_channels(c)) return set_call(c, "torch.prelu", *slope);
  const Expression x = computable(c, 0);
  const Expression sloped =
      call("torch.where", binary(x, ">", 0), x, binary(x, "*", computable(c, 1)));
  set_like_input(c, in_type(c, sloped, c.type(0)));
}

// Before opset 13 the axes from `axis` on count as one.
void set_of_flattened(NodeContext& c, const std::string& function) {
  const std::int64_t axis = c.int_or("axis", 1);
  const Expression x = c.tensor(0);
  if (axis == -1 || (c.rank(0) && axis_of(axis, c.rank(0)) == *c.rank(0) - 1))
    return set_like_input(c, call(function, x, -1));
  set_like_input(c, method(call(function, method(x, "flatten", axis), -1), "view_as", x));
}

void set_along_axis(NodeContext& c, const std::string& function) {
  const std::int64_t axis = axis_of(c.int_or("axis", -1), c.rank(0));
  set_like_input(c, call(function, c.tensor(0), axis));
}

void softmax(NodeContext& c) { set_along_axis(c, "torch.softmax"); }
void log_softmax(NodeContext& c) { set_along_axis(c, "torch.log_softmax"); }
void hardmax(NodeContext& c) { set_along_axis(c, c.helper("_hardmax")); }
void softmax_of_flattened(NodeContext& c) { set_of_flattened(c, "torch.softmax"); }
void log_softmax_of_flattened(NodeContext& c) { set_of_flattened(c, "torch.log_softmax"); }
void hardmax_of_flattened(NodeContext& c) { set_of_flattened(c, c.helper("_hardmax")); }

constexpr Operator kActivationOperators[] = {
    {"Celu", 12, celu, Folding::broadcast},
    {"Elu", 6, elu, Folding::broadcast},
    {"Gelu", 20, gelu, Folding::broadcast},
    {"HardSigmoid", 6, hard_sigmoid, Folding::broadcast},
    {"HardSwish", 14, hard_swish, Folding::broadcast},
    {"Hardmax", 1, hardmax_of_flattened, Folding::broadcast, Gradient::stops, 12},
    {"Hardmax", 13, hardmax, Folding::broadcast, Gradient::stops},
    {"LeakyRelu", 6, leaky_relu, Folding::broadcast},
    {"LogSoftmax", 1, log_softmax_of_flattened, Folding::broadcast, Gradient::flows, 12},
    {"LogSoftmax", 13, log_softmax, Folding::broadcast},
    {"Mish", 18, mish, Folding::broadcast},
    {"PRelu", 7, prelu, Folding::broadcast},
    {"Relu", 6, relu, Folding::broadcast},
    {"Selu", 6, selu, Folding::broadcast},
    {"Shrink", 9, shrink, Folding::broadcast},
    {"Sigmoid", 6, sigmoid, Folding::broadcast},
    {"Softmax", 1, softmax_of_flattened, Folding::broadcast, Gradient::flows, 12},
    {"Softmax", 13, softmax, Folding::broadcast},
    {"Softplus", 1, softplus, Folding::broadcast},
    {"Softsign", 1, softsign, Folding::broadcast},
    {"SwiGLU", 28, swiglu, Folding::broadcast},
    {"Swish", 24, swish, Folding::broadcast},
    {"ThresholdedRelu", 10, thresholded_relu, Folding::broadcast},
};

}  // namespace

std::span<const Operator> activation_operators() { return kActivationOperators; }

}  // namespace decent::onnx
