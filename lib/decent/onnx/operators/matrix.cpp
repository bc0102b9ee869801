// Products of matrices.

#include <algorithm>
#include <cmath>
#include <map>

#include "decent/core/script_text.h"
#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

std::optional<std::int64_t> product_rank(const NodeContext& c) {
  if (!c.rank(0) || !c.rank(1)) return std::nullopt;
  const std::int64_t a = *c.rank(0);
  const std::int64_t b = *c.rank(1);
  // A vector removes its own axis and the other operand's summed axis.
  return a == 1 || b == 1 ? std::max(a, b) - 1 : std::max(a, b);
}

void matmul(NodeContext& c) {
  const Expression product = call("torch.matmul", computable(c, 0), computable(c, 1));
  c.set(0, in_type(c, product, c.type(0)), c.type(0), product_rank(c));
}

// For integers, PyTorch takes no fractional factors.
Expression factor(NodeContext& c, const char* name) {
  const double value = c.float_or(name, 1.0);
  if (is_floating(c.type(0))) return value;
  if (value != std::trunc(value) || std::abs(value) > 1e15)
    throw Unsupported("multiplies integers by " + std::string(name) + " = " + literal(value));
  return static_cast<std::int64_t>(value);
}

Expression transposed(NodeContext& c, std::size_t input, const char* is_transposed) {
  const Expression x = computable(c, input);
  return c.int_or(is_transposed, 0) != 0 ? method(x, "t") : x;
}

Expression product_and_sum(NodeContext& c) {
  const Expression alpha = factor(c, "alpha");
  const Arguments matrices(transposed(c, 0, "transA"), transposed(c, 1, "transB"));
  const bool once = c.float_or("alpha", 1.0) == 1.0;
  if (!c.has(2)) {
    const Expression product = call("torch.mm", matrices);
    return once ? product : binary(product, "*", alpha);
  }
  Arguments arguments(computable(c, 2), matrices);
  if (c.float_or("beta", 1.0) != 1.0) arguments.add(keyword("beta", factor(c, "beta")));
  if (!once) arguments.add(keyword("alpha", alpha));
  return call("torch.addmm", arguments);
}

// Whether it has the form in which torch.nn.Linear is exported.
bool is_linear(const NodeContext& c) {
  return c.int_or("transB", 0) != 0 && c.float_or("alpha", 1.0) == 1.0 && is_floating(c.type(0)) &&
         (!c.has(2) || (c.float_or("beta", 1.0) == 1.0 && c.rank(2) == 1));
}

void gemm(NodeContext& c) {
  if (is_linear(c)) {
    Arguments arguments(transposed(c, 0, "transA"), c.tensor(1));
    if (c.has(2)) arguments.add(c.tensor(2));
    return c.set(0, call("torch.linear", arguments), c.type(0), 2);
  }
  c.set(0, in_type(c, product_and_sum(c), c.type(0)), c.type(0), 2);
}

// The number of letters of the result, if no "..." hides some.
std::optional<std::int64_t> einsum_rank(const std::string& equation) {
  if (equation.find('.') != std::string::npos) return std::nullopt;
  const auto letters = [](const std::string& text) {
    std::map<char, std::int64_t> counts;
    for (const char each : text) {
      if (std::isalpha(static_cast<unsigned char>(each)) != 0) ++counts[each];
    }
    return counts;
  };
  const std::size_t arrow = equation.find("->");
  if (arrow != std::string::npos)
    return static_cast<std::int64_t>(letters(equation.substr(arrow + 2)).size());
  const auto counts = letters(equation);
  return std::count_if(counts.begin(), counts.end(),
                       [](const auto& each) { return each.second == 1; });
}

void einsum(NodeContext& c) {
  const std::string equation = c.string_or("equation", "");
  Arguments operands;
  for (std::size_t i = 0; i < c.inputs(); ++i) operands.add(computable(c, i));
  const Expression product = call("torch.einsum", string_literal(equation), list(operands));
  c.set(0, in_type(c, product, c.type(0)), c.type(0), einsum_rank(equation));
}

void det(NodeContext& c) {
  const auto rank = c.rank(0) ? std::optional(*c.rank(0) - 2) : std::nullopt;
  c.set(0, call("torch.det", c.tensor(0)), c.type(0), rank);
}

constexpr Operator kMatrixOperators[] = {
    {"Det", 11, det},
    {"Einsum", 12, einsum},
    {"Gemm", 7, gemm},
    {"MatMul", 1, matmul},
};

}  // namespace

std::span<const Operator> matrix_operators() { return kMatrixOperators; }

}  // namespace decent::onnx
