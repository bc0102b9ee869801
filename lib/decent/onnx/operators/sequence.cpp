// Sequences: lists of tensors. A list that another node reads is never changed.

#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

void sequence_empty(NodeContext& c) {
  c.set_sequence(0, empty_list("Tensor"), c.type_attribute("dtype", ElementType::float32));
}

void sequence_construct(NodeContext& c) {
  Arguments elements;
  auto rank = c.rank(0);
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    elements.add(c.tensor(i));
    if (c.rank(i) != rank) rank = std::nullopt;
  }
  c.set_sequence(0, list(elements), c.type(0), rank);
}

void sequence_insert(NodeContext& c) {
  const Expression sequence = c.tensor(0);
  const Expression added = list(c.tensor(1));
  const auto rank = c.rank(0) == c.rank(1) ? c.rank(0) : std::nullopt;
  if (!c.has(2)) return c.set_sequence(0, binary(sequence, "+", added), c.type(1), rank);
  const std::string place = c.variable("place", c.int_scalar(2));
  const Expression before = subscript(sequence, ":" + place);
  const Expression behind = subscript(sequence, place + ":");
  c.set_sequence(0, binary(binary(before, "+", added), "+", behind), c.type(1), rank);
}

void sequence_erase(NodeContext& c) {
  const std::string place = c.has(1) ? c.int_scalar(1) : "-1";
  c.set_sequence(0, call(c.helper("_erased"), c.tensor(0), place), c.type(0), c.rank(0));
}

void sequence_at(NodeContext& c) {
  c.set(0, subscript(c.tensor(0), c.int_scalar(1)), c.type(0), c.rank(0));
}

void sequence_length(NodeContext& c) {
  c.set_integers(0, {Integer::size(call("len", c.tensor(0)))}, 0);
}

void split_to_sequence(NodeContext& c) {
  const std::int64_t axis = axis_of(c.int_or("axis", 0), c.rank(0));
  const std::string x = c.tensor(0);
  if (!c.has(1) && c.int_or("keepdims", 1) == 0) {
    const auto rank = c.rank(0) ? std::optional(*c.rank(0) - 1) : std::nullopt;
    return c.set_sequence(0, call("torch.unbind", x, axis), c.type(0), rank);
  }
  std::string sizes = "1";
  if (c.has(1)) {
    if (!c.rank(1)) throw Unsupported("has a split of unknown rank");
    sizes = *c.rank(1) == 0 ? c.int_scalar(1) : c.int_list(1);
  }
  c.set_sequence(0, call("torch.split", x, sizes, axis), c.type(0), c.rank(0));
}

void concat_from_sequence(NodeContext& c) {
  const bool stack = c.int_or("new_axis", 0) != 0;
  const auto rank = c.rank(0) ? std::optional(*c.rank(0) + (stack ? 1 : 0)) : std::nullopt;
  const std::int64_t axis = axis_of(c.int_or("axis", 0), rank);
  c.set(0, call(stack ? "torch.stack" : "torch.cat", c.tensor(0), axis), c.type(0), rank);
}

constexpr Operator kSequenceOperators[] = {
    {"ConcatFromSequence", 11, concat_from_sequence},
    {"SequenceAt", 11, sequence_at},
    {"SequenceConstruct", 11, sequence_construct},
    {"SequenceEmpty", 11, sequence_empty},
    {"SequenceErase", 11, sequence_erase},
    {"SequenceInsert", 11, sequence_insert},
    {"SequenceLength", 11, sequence_length, Folding::never, Gradient::stops},
    {"SplitToSequence", 11, split_to_sequence},
};

}  // namespace

std::span<const Operator> sequence_operators() { return kSequenceOperators; }

}  // namespace decent::onnx
