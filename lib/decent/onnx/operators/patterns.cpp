// Functions of PyTorch that ONNX does not have, under names of patterns.h.

#include "decent/onnx/graph/names.h"
#include "decent/onnx/translate/expressions.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

void safe_softmax(NodeContext& c) {
  c.set(0, "torch._safe_softmax(" + c.tensor(0) + ", " + std::to_string(c.int_or("axis", -1)) + ")",
        c.type(0), c.rank(0));
}

// Queries, keys, values and, unless is_causal, perhaps a mask that is added to the scores.
void fused_attention(NodeContext& c) {
  check_keys_and_values(c, c.tensor(1), c.tensor(2));
  const std::string mask = c.has(3) ? c.tensor(3) : "None";
  const std::string causal = c.int_or("is_causal", 0) != 0 ? "True" : "False";
  const std::string scale = c.has_attribute("scale") ? literal(c.float_or("scale", 1)) : "None";
  c.set(0,
        "torch.scaled_dot_product_attention(" + c.tensor(0) + ", " + c.tensor(1) + ", " +
            c.tensor(2) + ", " + mask + ", 0.0, " + causal + ", scale=" + scale + ")",
        c.type(2), c.rank(0));
}

// Input, weight, bias.
void linear(NodeContext& c) {
  const std::string weight =
      c.tensor(1) + (c.int_or("transposed", 0) != 0 ? ".transpose(0, 1)" : "");
  c.set(0, "torch.linear(" + c.tensor(0) + ", " + weight + ", " + c.tensor(2) + ")", c.type(0),
        c.rank(0));
}

constexpr Operator kPatternOperators[] = {
    {"Attention", 0, fused_attention},
    {"Linear", 0, linear},
    {"SafeSoftmax", 0, safe_softmax},
};

}  // namespace

std::span<const Operator> pattern_operators() { return kPatternOperators; }

}  // namespace decent::onnx
