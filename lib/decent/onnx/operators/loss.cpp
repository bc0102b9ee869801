// Losses that are part of the graph, by PyTorch's own functions.

#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

// The class that PyTorch ignores if a file names none; it is not a valid class.
constexpr std::int64_t kNoClass = -100;

// PyTorch's number for the reduction.
int loss_reduction(NodeContext& c) {
  const std::string name = c.string_or("reduction", "mean");
  if (name == "none") return 0;
  if (name == "mean") return 1;
  if (name == "sum") return 2;
  throw Unsupported("has reduction '" + name + "'; the specification has none, mean and sum");
}

std::optional<std::int64_t> loss_rank(NodeContext& c) {
  if (c.string_or("reduction", "mean") != "none") return 0;
  return c.rank(1);
}

// Labels, weights, reduction and ignored class, in the form of PyTorch's functions.
Arguments loss_arguments(NodeContext& c) {
  const Expression given = c.tensor(1);
  const Expression labels =
      c.type(1) == ElementType::int64 ? given : method(given, "to", "torch.int64");
  return Arguments(labels, optional_tensor(c, 2), loss_reduction(c),
                   c.int_or("ignore_index", kNoClass));
}

void negative_log_likelihood(NodeContext& c) {
  c.set(0, call("torch.nll_loss_nd", c.tensor(0), loss_arguments(c)), c.type(0), loss_rank(c));
}

void softmax_cross_entropy(NodeContext& c) {
  if (!c.wants(1)) {
    return c.set(0, call("torch.cross_entropy_loss", c.tensor(0), loss_arguments(c), 0.0),
                 c.type(0), loss_rank(c));
  }
  const std::string log_prob = c.declare(1, c.type(0), c.rank(0));
  c.assign(log_prob, call("torch.log_softmax", c.tensor(0), 1));
  c.set(0, call("torch.nll_loss_nd", log_prob, loss_arguments(c)), c.type(0), loss_rank(c));
}

constexpr Operator kLossOperators[] = {
    {"NegativeLogLikelihoodLoss", 12, negative_log_likelihood, Folding::broadcast},
    {"SoftmaxCrossEntropyLoss", 12, softmax_cross_entropy, Folding::broadcast},
};

}  // namespace

std::span<const Operator> loss_operators() { return kLossOperators; }

}  // namespace decent::onnx
