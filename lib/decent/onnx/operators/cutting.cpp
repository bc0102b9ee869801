// Tensors cut apart, joined and padded.

#include <algorithm>
#include <limits>

#include "decent/core/script_text.h"
#include "decent/core/text.h"
#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

bool set_joined_integers(NodeContext& c) {
  std::vector<Integer> all;
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    const auto part = c.integers(i);
    if (!part || c.rank(i) != 1) return false;
    all.insert(all.end(), part->begin(), part->end());
  }
  if (all.size() > kMaxIntegers) return false;
  c.set_integers(0, std::move(all), 1, c.type(0));
  return true;
}

void concat(NodeContext& c) {
  if (set_joined_integers(c)) return;
  if (c.inputs() == 1) return c.set_value(0, c.input(0));
  const std::int64_t axis = axis_of(c.int_or("axis", 0), c.rank(0));
  Arguments parts;
  std::optional<std::int64_t> rank;
  for (std::size_t i = 0; i < c.inputs(); ++i) {
    parts.add(c.tensor(i));
    if (!rank) rank = c.rank(i);
  }
  c.set(0, call("torch.cat", list(parts), axis), c.type(0), rank);
}

// The sizes of the parts as a List[int], if the node gives them.
std::optional<Expression> split_sizes(NodeContext& c) {
  if (const auto given = c.ints("split")) return list(*given);
  if (c.has(1)) return c.int_list(1);
  return std::nullopt;
}

bool set_split_integers(NodeContext& c, std::size_t parts) {
  const auto integers = c.integers(0);
  auto sizes = c.ints("split");
  if (!sizes && c.has(1)) sizes = c.known_integers(1);
  if (!integers || c.rank(0) != 1) return false;
  if (!sizes && (c.has(1) || integers->size() % parts != 0)) return false;
  if (sizes && sizes->size() != parts) return false;
  auto next = integers->begin();
  for (std::size_t i = 0; i < parts; ++i) {
    const auto size = sizes ? sizes->at(i) : static_cast<std::int64_t>(integers->size() / parts);
    if (size < 0 || integers->end() - next < size) return false;
    c.set_integers(i, {next, next + size}, 1, c.type(0));
    next += size;
  }
  return true;
}

void split(NodeContext& c) {
  const std::size_t parts = c.node().outputs.size();
  if (set_split_integers(c, parts)) return;
  const Expression x = c.tensor(0);
  const std::int64_t axis = axis_of(c.int_or("axis", 0), c.rank(0));
  const auto sizes = split_sizes(c);
  const Expression pieces =
      sizes ? call("torch.split", x, *sizes, axis) : method(x, "chunk", parts, axis);
  if (parts == 1) return c.set(0, subscript(pieces, 0), c.type(0), c.rank(0));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parts; ++i) names.push_back(c.declare(i, c.type(0), c.rank(0)));
  c.assign(names, pieces);
}

// One axis of a Slice.
struct Cut {
  std::int64_t axis = 0;
  Integer start;
  Integer end;
  std::int64_t step = 1;
};

struct SliceArguments {
  std::optional<std::vector<Integer>> starts;
  std::optional<std::vector<Integer>> ends;
  std::optional<std::vector<std::int64_t>> axes;
  std::optional<std::vector<std::int64_t>> steps;
};

std::optional<std::vector<Integer>> known_attribute(NodeContext& c, std::string_view name) {
  const auto values = c.ints(name);
  if (!values) throw Unsupported("lacks its attribute '" + std::string(name) + "'");
  std::vector<Integer> integers;
  for (const std::int64_t value : *values) integers.push_back(Integer::of(value));
  return integers;
}

SliceArguments slice_arguments(NodeContext& c) {
  SliceArguments all;
  if (c.opset() < 10) {
    all.starts = known_attribute(c, "starts");
    all.ends = known_attribute(c, "ends");
    all.axes = c.ints("axes");
  } else {
    all.starts = c.integers(1);
    all.ends = c.integers(2);
    if (c.has(3)) all.axes = c.known_integers(3);
    if (c.has(4)) all.steps = c.known_integers(4);
  }
  return all;
}

std::vector<std::int64_t> first_axes(std::size_t count) {
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < count; ++i) axes.push_back(static_cast<std::int64_t>(i));
  return axes;
}

// std::nullopt if arguments are only known when the model runs.
std::optional<std::vector<Cut>> cuts_of(NodeContext& c) {
  const SliceArguments given = slice_arguments(c);
  if (!given.starts || !given.ends || (c.has(3) && !given.axes) || (c.has(4) && !given.steps))
    return std::nullopt;
  const std::size_t count = given.starts->size();
  const auto axes = axes_of(given.axes.value_or(first_axes(count)), c.rank(0));
  const auto steps = given.steps.value_or(std::vector<std::int64_t>(count, 1));
  if (given.ends->size() != count || axes.size() != count || steps.size() != count)
    throw Unsupported("has starts, ends, axes and steps of different lengths");
  std::vector<Cut> cuts;
  for (std::size_t i = 0; i < count; ++i) {
    if (steps[i] == 0) throw Unsupported("has a step of 0");
    cuts.push_back({axes[i], (*given.starts)[i], (*given.ends)[i], steps[i]});
  }
  return cuts;
}

// An end that means "as far as possible" is written as the largest number of one of two integer
// types.
constexpr std::int64_t kFarEnd = std::numeric_limits<std::int32_t>::max();

// A bound in a List[int] or an argument, without the one number that TorchScript cannot read.
std::string bound_text(const Integer& bound) {
  if (!bound.known) return bound.text();
  constexpr std::int64_t kMaxInt64 = std::numeric_limits<std::int64_t>::max();
  return std::to_string(std::clamp(*bound.known, -kMaxInt64, kMaxInt64));
}

// "1:3", ":", "::2".
std::string range_text(const Cut& cut) {
  const bool from_first =
      cut.start.known && (*cut.start.known == 0 || *cut.start.known <= -kFarEnd);
  const bool to_last = cut.end.known && *cut.end.known >= kFarEnd;
  std::string text = (from_first ? "" : bound_text(cut.start)) + ":";
  if (!to_last) text += bound_text(cut.end);
  return cut.step == 1 ? text : text + ":" + std::to_string(cut.step);
}

Expression sliced_forwards(const Expression& x, const std::vector<Cut>& cuts) {
  std::vector<std::string> ranges;
  for (const Cut& cut : cuts) {
    const auto place = static_cast<std::size_t>(cut.axis);
    if (ranges.size() <= place) ranges.resize(place + 1, ":");
    ranges[place] = range_text(cut);
  }
  return subscript(x, join(ranges));
}

Expression sliced(NodeContext& c, const std::vector<Cut>& cuts) {
  std::vector<Cut> forwards;
  for (const Cut& cut : cuts) {
    if (cut.step > 0 && cut.axis >= 0) forwards.push_back(cut);
  }
  Expression result = c.tensor(0);
  if (!forwards.empty()) result = sliced_forwards(result, forwards);
  for (const Cut& cut : cuts) {
    if (cut.step > 0 && cut.axis >= 0) continue;
    const std::string function = cut.step > 0 ? "torch.slice" : c.helper("_slice_backwards");
    result = call(function, result, cut.axis, bound_text(cut.start), bound_text(cut.end), cut.step);
  }
  return result;
}

// Slices of a shape.
bool set_sliced_integers(NodeContext& c, const std::vector<Cut>& cuts) {
  const auto integers = c.integers(0);
  if (!integers || c.rank(0) != 1 || cuts.size() != 1) return false;
  const Cut& cut = cuts.front();
  if (!cut.start.known || !cut.end.known) return false;
  const auto size = static_cast<std::int64_t>(integers->size());
  const bool back = cut.step < 0;
  const auto placed = [&](std::int64_t bound, std::int64_t lowest, std::int64_t highest) {
    return std::clamp(bound < 0 ? bound + size : bound, lowest, highest);
  };
  if (size == 0) return false;
  const std::int64_t start = placed(*cut.start.known, 0, back ? size - 1 : size);
  const std::int64_t end = placed(*cut.end.known, back ? -1 : 0, back ? size - 1 : size);
  const std::int64_t step = std::clamp(cut.step, -size, size);  // beyond: always one element
  std::vector<Integer> kept;
  for (std::int64_t i = start; back ? i > end : i < end; i += step)
    kept.push_back((*integers)[static_cast<std::size_t>(i)]);
  c.set_integers(0, std::move(kept), 1, c.type(0));
  return true;
}

Expression optional_int_list(NodeContext& c, std::size_t input) {
  return c.has(input) ? c.int_list(input) : empty_list("int");
}

void slice(NodeContext& c) {
  if (const auto cuts = cuts_of(c)) {
    if (set_sliced_integers(c, *cuts)) return;
    return c.set(0, sliced(c, *cuts), c.type(0), c.rank(0));
  }
  const std::string starts = c.int_list(1);
  const std::string ends = c.int_list(2);
  const Expression axes = optional_int_list(c, 3);
  const Expression steps = optional_int_list(c, 4);
  c.set(0, call(c.helper("_slice"), c.tensor(0), starts, ends, axes, steps), c.type(0), c.rank(0));
}

// Pads by axis from the front: before and after; std::nullopt if they are not known now.
struct Padding {
  Integer before = Integer::of(0);
  Integer after = Integer::of(0);
  bool none() const { return before.known == 0 && after.known == 0; }
};

std::optional<std::vector<Padding>> paddings_of(NodeContext& c) {
  const auto pads = c.opset() < 11 ? known_attribute(c, "pads") : c.integers(1);
  if (!pads || (c.has(3) && !c.known_integers(3))) return std::nullopt;
  const std::size_t count = pads->size() / 2;
  const auto rank = c.rank(0) || c.has(3) ? c.rank(0) : static_cast<std::int64_t>(count);
  if (!rank) return std::nullopt;
  const auto axes = axes_of(c.has(3) ? *c.known_integers(3) : first_axes(count), rank);
  if (axes.size() != count) throw Unsupported("has pads and axes of different lengths");
  std::vector<Padding> all(static_cast<std::size_t>(*rank));
  for (std::size_t i = 0; i < count; ++i)
    all[static_cast<std::size_t>(axes[i])] = {(*pads)[i], (*pads)[i + count]};
  return all;
}

// In torch's order: from the last dimension backwards, `dimensions` of them.
Expression torch_pads(const std::vector<Padding>& all, std::size_t dimensions) {
  std::vector<Integer> pads;
  for (std::size_t i = 0; i < dimensions; ++i) {
    const Padding& each = all[all.size() - 1 - i];
    pads.push_back(each.before);
    pads.push_back(each.after);
  }
  return list(pads);
}

// How many of the last dimensions have padding.
std::size_t padded_dimensions(const std::vector<Padding>& all) {
  const auto first =
      std::find_if(all.begin(), all.end(), [](const Padding& each) { return !each.none(); });
  return static_cast<std::size_t>(all.end() - first);
}

Expression pad_value(NodeContext& c) {
  if (c.opset() < 11) return c.float_or("value", 0);
  const ElementType type = c.type(0);
  if (!c.has(2)) return is_floating(type) ? "0.0" : "0";
  if (is_floating(type)) return c.float_scalar(2);
  return type == ElementType::boolean ? call("int", c.bool_scalar(2)) : c.int_scalar(2);
}

// Pads that are only known when the model runs, as torch.constant_pad_nd takes them.
Expression computed_pads(NodeContext& c) {
  const std::string given = c.int_list(1);
  const Expression axes = optional_int_list(c, 3);
  return call(c.helper("_pad_sizes"), method(c.tensor(0), "dim"), given, axes);
}

Expression constant_padded(NodeContext& c, const std::optional<std::vector<Padding>>& all) {
  const Expression pads = all ? torch_pads(*all, padded_dimensions(*all)) : computed_pads(c);
  return call("torch.constant_pad_nd", c.tensor(0), pads, pad_value(c));
}

// PyTorch's own function if it has one for these dimensions: it pads, and does not cut, 1 to 3
// dimensions after one or two others.
std::optional<Expression> padded_by_torch(NodeContext& c, const std::vector<Padding>& all,
                                          const std::string& mode) {
  const std::size_t padded = padded_dimensions(all);
  const std::size_t dimensions = std::max(padded, all.size() < 2 ? 0 : all.size() - 2);
  const bool cut = std::any_of(all.begin(), all.end(), [](const Padding& each) {
    return !each.before.known || !each.after.known || *each.before.known < 0 ||
           *each.after.known < 0;
  });
  if (mode == "wrap" || cut || dimensions == 0 || dimensions > 3 || dimensions == all.size())
    return std::nullopt;
  const std::string function = mode == "reflect" ? "torch.reflection_pad" : "torch.replication_pad";
  return call(function + std::to_string(dimensions) + "d", c.tensor(0),
              torch_pads(all, dimensions));
}

void pad(NodeContext& c) {
  const std::string mode = c.string_or("mode", "constant");
  const auto all = paddings_of(c);
  if (all && padded_dimensions(*all) == 0) return c.set_value(0, c.input(0));
  if (mode == "constant") return c.set(0, constant_padded(c, all), c.type(0), c.rank(0));
  if (mode != "reflect" && mode != "edge" && mode != "wrap")
    throw Unsupported("has the mode '" + mode + "'");
  auto padded = all ? padded_by_torch(c, *all, mode) : std::nullopt;
  if (!padded) {
    const Expression pads = c.opset() < 11 ? list(*known_attribute(c, "pads")) : c.int_list(1);
    const Expression axes = optional_int_list(c, 3);
    padded = call(c.helper("_pad"), c.tensor(0), pads, axes, string_literal(mode));
  }
  c.set(0, *padded, c.type(0), c.rank(0));
}

bool depth_first(NodeContext& c) {
  const std::string mode = c.string_or("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") throw Unsupported("has the mode '" + mode + "'");
  return mode == "DCR";
}

void rearrange(NodeContext& c, const std::string& function) {
  c.set(0, call(function, c.tensor(0), c.int_or("blocksize", 0)), c.type(0), 4);
}

void depth_to_space(NodeContext& c) {
  rearrange(c, depth_first(c) ? c.helper("_depth_to_space") : "torch.pixel_shuffle");
}

void space_to_depth(NodeContext& c) {
  rearrange(c, depth_first(c) ? c.helper("_space_to_depth") : "torch.pixel_unshuffle");
}

constexpr Operator kCuttingOperators[] = {
    {"Concat", 4, concat, Folding::sum},
    {"DepthToSpace", 1, depth_to_space, Folding::sum},
    {"Pad", 2, pad},
    {"Slice", 1, slice, Folding::sum},
    {"SpaceToDepth", 1, space_to_depth, Folding::sum},
    {"Split", 2, split, Folding::sum},
};

}  // namespace

std::span<const Operator> cutting_operators() { return kCuttingOperators; }

}  // namespace decent::onnx
