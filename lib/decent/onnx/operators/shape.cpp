// Shapes of tensors, and views of them in other shapes.

#include <algorithm>
#include <limits>
#include <numeric>

#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

std::int64_t clamped(std::int64_t place, std::int64_t rank) {
  return std::clamp<std::int64_t>(place < 0 ? place + rank : place, 0, rank);
}

void shape(NodeContext& c) {
  constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();
  const std::int64_t start = c.int_or("start", 0);
  const std::int64_t end = c.int_or("end", kNoEnd);
  const auto rank = c.rank(0);
  if (!rank) {
    const std::string stop = end == kNoEnd ? "" : std::to_string(end);
    const std::string range = std::to_string(start) + ":" + stop;
    const Expression all = method(c.tensor(0), "size");
    return c.set(0,
                 call("torch.tensor", range == "0:" ? all : subscript(all, range),
                      keyword("dtype", "torch.int64"), keyword("device", c.device())),
                 ElementType::int64, 1);
  }
  std::vector<Integer> sizes;
  for (std::int64_t i = clamped(start, *rank); i < clamped(end, *rank); ++i)
    sizes.push_back(size_of_dimension(c, 0, i));
  c.set_integers(0, std::move(sizes), 1);
}

std::int64_t count_of(const std::vector<std::int64_t>& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

void size(NodeContext& c) {
  const auto& dims = c.input(0).dims;
  if (!dims) return c.set_integers(0, {Integer::size(method(c.tensor(0), "numel"))}, 0);
  c.set_integers(0, {Integer::of(count_of(*dims))}, 0);
}

// Integers of a shape stay integers if they only change between rank 0 and 1.
bool set_integers_of_rank(NodeContext& c, std::int64_t rank) {
  const auto integers = c.integers(0);
  if (!integers || rank > 1 || (rank == 0 && integers->size() != 1)) return false;
  c.set_integers(0, *integers, rank, c.type(0));
  return true;
}

// A parameter's view has the same shape in every run.
void set_reshaped_dims(NodeContext& c, const std::vector<Integer>& shape) {
  const auto& from = c.input(0).dims;
  if (!from) return;
  const std::int64_t count = count_of(*from);
  std::vector<std::int64_t> dims;
  std::int64_t others = 1;
  for (const Integer& each : shape) {
    if (!each.known || *each.known < -1) return;
    dims.push_back(*each.known);
    if (*each.known != -1 && __builtin_mul_overflow(others, *each.known, &others)) return;
  }
  // PyTorch refuses shapes that do not fit when the model runs.
  const auto free = std::count(dims.begin(), dims.end(), std::int64_t{-1});
  if (free > 1 || others == 0 || count % others != 0 || (free == 0 && others != count)) return;
  std::replace(dims.begin(), dims.end(), std::int64_t{-1}, count / others);
  c.set_dims(0, std::move(dims));
}

void reshape(NodeContext& c) {
  const bool zero_keeps = c.int_or("allowzero", 0) == 0;
  auto shape = c.integers(1);
  if (!shape) {
    const auto& dims = c.input(1).dims;
    const auto rank = dims && dims->size() == 1 ? std::optional(dims->front()) : std::nullopt;
    const std::string sizes = c.int_list(1);
    return c.set(0,
                 zero_keeps ? call(c.helper("_reshape"), c.tensor(0), sizes)
                            : method(c.tensor(0), "reshape", sizes),
                 c.type(0), rank);
  }
  const auto rank = static_cast<std::int64_t>(shape->size());
  if (set_integers_of_rank(c, rank)) return;
  for (std::size_t i = 0; i < shape->size() && zero_keeps; ++i) {
    if ((*shape)[i].known == 0) (*shape)[i] = size_of_dimension(c, 0, static_cast<std::int64_t>(i));
  }
  c.set(0, method(c.tensor(0), "reshape", list(*shape)), c.type(0), rank);
  set_reshaped_dims(c, *shape);
}

void flatten(NodeContext& c) {
  const Expression x = c.tensor(0);
  const auto rank = c.rank(0);
  std::int64_t axis = c.int_or("axis", 1);
  if (!rank) return c.set(0, call(c.helper("_flatten"), x, axis), c.type(0), 2);
  if (axis < -*rank || axis > *rank)
    throw Unsupported("has axis " + std::to_string(axis) + " for a tensor of rank " +
                      std::to_string(*rank));
  if (axis < 0) axis += *rank;
  Expression flat = method(method(x, "flatten", axis), "flatten", 0, axis - 1);
  if (axis == 1) flat = method(x, "flatten", 1);
  if (axis == 0) flat = method(x, "reshape", list(1, -1));
  if (axis == *rank) flat = method(x, "reshape", list(-1, 1));
  c.set(0, flat, c.type(0), 2);
}

// Axes from an attribute, or from an input that is known now.
std::optional<std::vector<std::int64_t>> known_axes(NodeContext& c) {
  if (const auto given = c.ints("axes")) return given;
  return c.has(1) ? c.known_integers(1) : std::nullopt;
}

void squeeze(NodeContext& c) {
  const auto axes = known_axes(c);
  const auto rank = c.rank(0);
  const auto integers = c.integers(0);
  if (integers && rank == 1 && integers->size() == 1) return void(set_integers_of_rank(c, 0));
  if (!axes) {
    const Arguments given = c.has(1) ? Arguments(c.int_list(1)) : Arguments();
    return c.set(0, method(c.tensor(0), "squeeze", given), c.type(0));
  }
  if (axes->empty()) return c.set_value(0, c.input(0));
  const std::vector<std::int64_t> places = axes_of(*axes, rank);
  const Expression squeezed = places.size() == 1 ? places[0] : list(places);
  c.set(0, method(c.tensor(0), "squeeze", squeezed), c.type(0),
        rank ? std::optional(*rank - static_cast<std::int64_t>(places.size())) : std::nullopt);
}

// The places of new dimensions, in the order in which they are inserted one after the other; empty
// if that is not known now.
std::vector<std::int64_t> insertion_order(std::vector<std::int64_t> axes,
                                          std::optional<std::int64_t> rank) {
  std::sort(axes.begin(), axes.end());
  if (rank) {
    axes = axes_of(axes, *rank + static_cast<std::int64_t>(axes.size()));
    std::sort(axes.begin(), axes.end());
    if (std::adjacent_find(axes.begin(), axes.end()) != axes.end())
      throw Unsupported("has an axis twice");
    return axes;
  }
  if (axes.front() >= 0) return axes;
  if (axes.back() >= 0) return {};
  std::reverse(axes.begin(), axes.end());  // counted from the end: the last goes in first
  return axes;
}

void unsqueeze(NodeContext& c) {
  const auto axes = known_axes(c);
  const auto rank = c.rank(0);
  if (axes && axes->empty()) return c.set_value(0, c.input(0));
  if (axes && axes->size() > kMaxIntegers)
    throw Unsupported("adds " + std::to_string(axes->size()) + " dimensions; at most " +
                      std::to_string(kMaxIntegers) + " are imported");
  if (axes && rank == 0 && axes->size() == 1 && set_integers_of_rank(c, 1)) return;
  const auto new_rank =
      axes && rank ? std::optional(*rank + static_cast<std::int64_t>(axes->size())) : std::nullopt;
  const std::vector<std::int64_t> order =
      axes ? insertion_order(*axes, rank) : std::vector<std::int64_t>{};
  Expression result = c.tensor(0);
  for (const std::int64_t axis : order) result = method(result, "unsqueeze", axis);
  if (order.empty()) {
    const Expression places = axes ? list(*axes) : c.int_list(1);
    result = call(c.helper("_unsqueeze"), result, places);
  }
  c.set(0, result, c.type(0), new_rank);
  auto dims = c.input(0).dims;
  if (!dims || !axes) return;
  for (const std::int64_t axis : order) dims->insert(dims->begin() + axis, 1);
  c.set_dims(0, std::move(*dims));
}

// The two axes that a permutation swaps, if it does nothing else.
std::optional<std::pair<std::size_t, std::size_t>> swapped_axes(
    const std::vector<std::int64_t>& permutation) {
  std::vector<std::size_t> moved;
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    if (permutation[i] != static_cast<std::int64_t>(i)) moved.push_back(i);
  }
  if (moved.size() != 2) return std::nullopt;
  return std::pair(moved[0], moved[1]);
}

void check_permutation(std::vector<std::int64_t> axes, std::optional<std::int64_t> rank) {
  std::vector<std::int64_t> all(axes.size());
  std::iota(all.begin(), all.end(), 0);
  std::sort(axes.begin(), axes.end());
  if (axes != all || (rank && *rank != static_cast<std::int64_t>(axes.size())))
    throw Unsupported("has a 'perm' that is no order of its input's axes");
}

void transpose(NodeContext& c) {
  auto permutation = c.ints("perm");
  const auto rank = c.rank(0);
  if (!permutation && !rank) {
    return c.set(0, call(c.helper("_reverse_axes"), c.tensor(0)), c.type(0));
  }
  if (!permutation) {
    permutation.emplace(static_cast<std::size_t>(*rank));
    std::iota(permutation->rbegin(), permutation->rend(), 0);
  }
  const auto new_rank = static_cast<std::int64_t>(permutation->size());
  check_permutation(*permutation, rank);
  if (std::is_sorted(permutation->begin(), permutation->end())) return c.set_value(0, c.input(0));
  const auto swapped = swapped_axes(*permutation);
  const Expression x = c.tensor(0);
  c.set(0,
        swapped ? method(x, "transpose", swapped->first, swapped->second)
                : method(x, "permute", list(*permutation)),
        c.type(0), new_rank);
  const auto& from = c.input(0).dims;
  if (!from) return;
  std::vector<std::int64_t> dims;
  for (const std::int64_t axis : *permutation)
    dims.push_back(from->at(static_cast<std::size_t>(axis)));
  c.set_dims(0, std::move(dims));
}

// The argument of torch's expand for ONNX's shape, in which 1 keeps a dimension; std::nullopt if it
// depends on sizes that are only known when the model runs.
std::optional<std::vector<Integer>> expand_sizes(NodeContext& c, std::vector<Integer> shape) {
  if (!c.rank(0)) return std::nullopt;
  while (static_cast<std::int64_t>(shape.size()) < *c.rank(0))
    shape.insert(shape.begin(), Integer::of(1));
  const std::size_t added = shape.size() - static_cast<std::size_t>(*c.rank(0));
  for (std::size_t i = added; i < shape.size(); ++i) {
    const Integer own = size_of_dimension(c, 0, static_cast<std::int64_t>(i - added));
    if (shape[i].known == 1 || shape[i].text() == own.text()) {
      shape[i] = Integer::of(-1);
    } else if (!shape[i].known && own.known != 1) {
      return std::nullopt;  // it may be 1 when the model runs
    }
  }
  return shape;
}

void expand(NodeContext& c) {
  const auto shape = c.integers(1);
  if (!shape) {
    const std::string sizes = c.int_list(1);
    return c.set(0, call(c.helper("_expand"), c.tensor(0), sizes), c.type(0));
  }
  const auto count = static_cast<std::int64_t>(shape->size());
  const auto rank = c.rank(0) ? std::optional(std::max(*c.rank(0), count)) : std::nullopt;
  if (const auto sizes = expand_sizes(c, *shape)) {
    const bool same =
        count <= *c.rank(0) &&
        std::all_of(sizes->begin(), sizes->end(), [](auto& each) { return each.known == -1; });
    if (same) return c.set_value(0, c.input(0));
    c.set(0, method(c.tensor(0), "expand", list(*sizes)), c.type(0), rank);
  } else {
    c.set(0, call(c.helper("_expand"), c.tensor(0), list(*shape)), c.type(0), rank);
  }
}

void tile(NodeContext& c) {
  const std::string repeats = c.int_list(1);
  c.set(0, method(c.tensor(0), "repeat", repeats), c.type(0), c.rank(0));
}

constexpr Operator kShapeOperators[] = {
    {"Expand", 8, expand, Folding::product},
    {"Flatten", 9, flatten, Folding::sum},
    {"Reshape", 5, reshape, Folding::sum},
    {"Shape", 1, shape, Folding::never, Gradient::stops},
    {"Size", 1, size, Folding::never, Gradient::stops},
    {"Squeeze", 1, squeeze, Folding::sum},
    {"Tile", 6, tile, Folding::product},
    {"Transpose", 1, transpose, Folding::sum},
    {"Unsqueeze", 1, unsqueeze, Folding::sum},
};

}  // namespace

std::span<const Operator> shape_operators() { return kShapeOperators; }

}  // namespace decent::onnx
