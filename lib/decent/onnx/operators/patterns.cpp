// Functions of PyTorch that ONNX does not have, under the names of patterns.h.

#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

void safe_softmax(NodeContext& c) {
  set_like_input(c, call("torch._safe_softmax", c.tensor(0), c.int_or("axis", -1)));
}

// Queries, keys, values and, unless is_causal, perhaps a mask that is added to the scores.
void fused_attention(NodeContext& c) {
  check_keys_and_values(c, c.tensor(1), c.tensor(2));
  const double dropout = 0;
  const bool causal = c.int_or("is_causal", 0) != 0;
  const Expression scale = c.has_attribute("scale") ? c.float_or("scale", 1) : Expression("None");
  c.set(0,
        call("torch.scaled_dot_product_attention", c.tensor(0), c.tensor(1), c.tensor(2),
             optional_tensor(c, 3), dropout, causal, keyword("scale", scale)),
        c.type(2), c.rank(0));
}

// Input, weight, bias.
void linear(NodeContext& c) {
  const Expression given = c.tensor(1);
  const Expression weight =
      c.int_or("transposed", 0) != 0 ? method(given, "transpose", 0, 1) : given;
  set_like_input(c, call("torch.linear", c.tensor(0), weight, c.tensor(2)));
}

// A bias of which the second half of each row has no gradient.
void recurrent_bias(NodeContext& c) {
  const auto& dims = c.input(0).dims;
  if (!dims || dims->size() != 2) throw Unsupported("needs a bias of two dimensions");
  const std::int64_t half = dims->back() / 2;
  const Expression first = method(c.tensor(0), "narrow", 1, 0, half);
  const Expression second = method(method(c.tensor(0), "narrow", 1, half, half), "detach");
  set_like_input(c, call("torch.cat", list(first, second), 1));
}

constexpr Operator kPatternOperators[] = {
    {"Attention", 0, fused_attention},
    {"Linear", 0, linear},
    {"RecurrentBias", 0, recurrent_bias},
    {"SafeSoftmax", 0, safe_softmax},
};

}  // namespace

std::span<const Operator> pattern_operators() { return kPatternOperators; }

}  // namespace decent::onnx
