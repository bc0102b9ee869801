// Elements picked out of tensors: by index, by order, by condition.

#include <algorithm>

#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

// Elements of a shape.
bool set_gathered_integers(NodeContext& c) {
  const auto integers = c.integers(0);
  const auto indices = c.known_integers(1);
  const auto rank = c.rank(1);
  if (!integers || c.rank(0) != 1 || !indices || rank.value_or(2) > 1) return false;
  if (indices->size() > kMaxIntegers) return false;
  const auto size = static_cast<std::int64_t>(integers->size());
  std::vector<Integer> picked;
  for (const std::int64_t index : *indices) {
    if (index < -size || index >= size)
      throw Unsupported("has index " + std::to_string(index) + " into " + std::to_string(size) +
                        " elements");
    picked.push_back((*integers)[static_cast<std::size_t>(index < 0 ? index + size : index)]);
  }
  c.set_integers(0, std::move(picked), *rank, c.type(0));
  return true;
}

// Indices counted from the front, because PyTorch's functions refuse the negative ones that ONNX
// allows.
Expression indices_from_front(NodeContext& c, const Integer& size) {
  const std::string indices = c.tensor(1);
  const auto known = c.known_integers(1);
  if (known && std::all_of(known->begin(), known->end(), [](auto index) { return index >= 0; }))
    return indices;
  return call(c.helper("_not_negative"), indices, size);
}

// Whether it is a trained table: then the function of nn.Embedding is used, because of its
// gradient.
bool is_embedding(NodeContext& c, std::int64_t axis) {
  const Value& table = c.input(0);
  return axis == 0 && table.rank == 2 && table.dims && !table.constant && is_floating(table.type);
}

// "x[:, :, place]" for axis 2.
Expression subscript_of_axis(const Expression& x, std::int64_t axis, const Expression& place) {
  Arguments places;
  for (std::int64_t i = 0; i < axis; ++i) places.add(":");
  places.add(place);
  return subscript(x, places.text());
}

void gather(NodeContext& c) {
  if (set_gathered_integers(c)) return;
  const std::int64_t axis = axis_of(c.int_or("axis", 0), c.rank(0));
  const auto rank =
      c.rank(0) && c.rank(1) ? std::optional(*c.rank(0) + *c.rank(1) - 1) : std::nullopt;
  const auto index = c.integers(1);
  const Expression x = c.tensor(0);
  if (is_embedding(c, axis)) {
    const Expression indices = indices_from_front(c, size_of_dimension(c, 0, 0));
    return c.set(0, call("torch.embedding", x, indices), c.type(0), rank);
  }
  const bool one = index && index->size() == 1;
  if (one && c.rank(1) == 0) {
    const Integer& place = index->front();
    return c.set(0, axis < 0 ? method(x, "select", axis, place) : subscript_of_axis(x, axis, place),
                 c.type(0), rank);
  }
  if (one && c.rank(1) == 1)
    return c.set(0, method(x, "narrow", axis, index->front(), 1), c.type(0), rank);
  // Indexing takes negative indices, and puts the indices' dimensions where the axis was.
  c.set(0,
        axis < 0 ? call(c.helper("_take"), x, axis, c.tensor(1))
                 : subscript_of_axis(x, axis, c.tensor(1)),
        c.type(0), rank);
}

// Indices for torch.gather and torch.scatter: int64, from the front.
Expression element_indices(NodeContext& c, std::int64_t axis) {
  const Expression indices = indices_from_front(c, size_of_dimension(c, 0, axis));
  return c.type(1) == ElementType::int64 ? indices : method(indices, "to", "torch.int64");
}

void gather_elements(NodeContext& c) {
  const std::int64_t axis = axis_of(c.int_or("axis", 0), c.rank(0));
  const Expression indices = element_indices(c, axis);
  c.set(0, call("torch.gather", c.tensor(0), axis, indices), c.type(0), c.rank(0));
}

std::optional<std::int64_t> gather_nd_rank(NodeContext& c, std::int64_t batch_dims) {
  const auto& dims = c.input(1).dims;
  if (!c.rank(0) || !dims || dims->empty()) return std::nullopt;
  return *c.rank(0) + static_cast<std::int64_t>(dims->size()) - 1 - dims->back() - batch_dims;
}

void gather_nd(NodeContext& c) {
  const std::int64_t batch_dims = c.int_or("batch_dims", 0);
  if (batch_dims < 0 || batch_dims >= kMaxDimensions)
    throw Unsupported("has batch_dims " + std::to_string(batch_dims));
  c.set(0, call(c.helper("_gather_nd"), c.tensor(0), c.tensor(1), batch_dims), c.type(0),
        gather_nd_rank(c, batch_dims));
}

// Sorts instead of calling torch.topk, because the first of equal elements must come first.
void top_k(NodeContext& c) {
  const std::int64_t axis = axis_of(c.int_or("axis", -1), c.rank(0));
  const Expression k = c.opset() < 10 ? Expression(c.int_or("k", 0)) : c.int_scalar(1);
  const bool largest = c.int_or("largest", 1) != 0;
  const std::string values = c.declare(0, c.type(0), c.rank(0));
  const std::string indices = c.declare(1, ElementType::int64, c.rank(0));
  c.assign(std::vector{values, indices}, call(c.helper("_top_k"), c.tensor(0), k, axis, largest));
}

void non_zero(NodeContext& c) {
  c.set(0, method(call("torch.nonzero", c.tensor(0)), "t"), ElementType::int64, 2);
}

// The input of an operator that goes along an axis, flattened if no axis is given.
Expression flat_without_axis(NodeContext& c) {
  const Expression x = c.tensor(0);
  return c.has_attribute("axis") ? x : method(x, "reshape", list(-1));
}

void compress(NodeContext& c) {
  const bool flat = !c.has_attribute("axis");
  const Expression x = flat_without_axis(c);
  const std::int64_t axis = flat ? 0 : axis_of(c.int_or("axis", 0), c.rank(0));
  const Expression kept = method(call("torch.nonzero", c.tensor(1)), "squeeze", 1);
  c.set(0, method(x, "index_select", axis, kept), c.type(0),
        flat ? std::optional<std::int64_t>(1) : c.rank(0));
}

void unique(NodeContext& c) {
  const bool flat = !c.has_attribute("axis");
  const Expression x = flat_without_axis(c);
  const std::int64_t axis = flat ? 0 : axis_of(c.int_or("axis", 0), c.rank(0));
  const bool sorted = c.int_or("sorted", 1) != 0;
  std::vector<std::string> names{
      c.declare(0, c.type(0), flat ? std::optional<std::int64_t>(1) : c.rank(0))};
  for (std::size_t i = 1; i < 4; ++i) names.push_back(c.declare(i, ElementType::int64, 1));
  c.assign(names, call(c.helper("_unique"), x, axis, sorted));
}

void reverse_sequence(NodeContext& c) {
  const std::int64_t time = c.int_or("time_axis", 0);
  const std::int64_t batch = c.int_or("batch_axis", 1);
  if (!((time == 0 && batch == 1) || (time == 1 && batch == 0)))
    throw Unsupported("has other axes than 0 and 1 for time and batch");
  c.set(0, call(c.helper("_reverse_sequence"), c.tensor(0), c.tensor(1), time), c.type(0),
        c.rank(0));
}

constexpr Operator kIndexingOperators[] = {
    {"Compress", 9, compress, Folding::sum},
    {"Gather", 1, gather, Folding::pairs},
    {"GatherElements", 11, gather_elements, Folding::sum},
    {"GatherND", 11, gather_nd, Folding::pairs},
    {"NonZero", 9, non_zero, Folding::never, Gradient::stops},
    {"ReverseSequence", 10, reverse_sequence, Folding::sum},
    {"TopK", 1, top_k},
    {"Unique", 11, unique},
};

}  // namespace

std::span<const Operator> indexing_operators() { return kIndexingOperators; }

}  // namespace decent::onnx
