// Reductions over axes, and running sums.

#include <algorithm>

#include "decent/onnx/translate/expressions.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

// What a reduction is in PyTorch: arguments are the tensor, a List[int] of axes, and the end of
// the argument list, which says whether dimensions are kept.
struct Reduction {
  std::string (*reduce)(NodeContext& c, const std::string& x, const std::string& axes, bool keep);
  // Over no axes at all, which ONNX can ask for.
  std::string (*apply)(NodeContext& c, const std::string& x);
};

std::string keep_text(bool keep) { return keep ? ", keepdim=True" : ""; }

// Integers keep their type, where torch would make them int64.
std::string type_text(NodeContext& c) {
  return is_floating(c.type(0)) || c.type(0) == ElementType::int64
             ? ""
             : ", dtype=" + c.dtype(c.type(0));
}

std::string summed(NodeContext& c, const std::string& x, const std::string& axes, bool keep) {
  return "torch.sum(" + x + ", " + axes + keep_text(keep) + type_text(c) + ")";
}

// The mean of integers is cut to one; so is a norm.
std::string of_doubles(NodeContext& c, const std::string& text) {
  return is_floating(c.type(0)) ? text : text + ".to(" + c.dtype(c.type(0)) + ")";
}

std::string as_floating(NodeContext& c, const std::string& x) {
  return is_floating(c.type(0)) ? x : x + ".to(torch.float64)";
}

std::string averaged(NodeContext& c, const std::string& x, const std::string& axes, bool keep) {
  return of_doubles(c, "torch.mean(" + as_floating(c, x) + ", " + axes + keep_text(keep) + ")");
}

std::string extreme(NodeContext& c, const std::string& function, const std::string& x,
                    const std::string& axes, bool keep) {
  const std::string arguments = "(" + x + ", " + axes + keep_text(keep) + ")";
  // Of nothing, too: amax and amin refuse that.
  if (c.type(0) == ElementType::boolean)
    return (function == "amax" ? "torch.any" : "torch.all") + arguments;
  if (!is_floating(c.type(0))) return "torch." + function + arguments;
  return c.helper("_" + function) + "(" + x + ", " + axes + ", " + bool_text(keep) + ")";
}

std::string largest(NodeContext& c, const std::string& x, const std::string& axes, bool keep) {
  return extreme(c, "amax", x, axes, keep);
}

std::string smallest(NodeContext& c, const std::string& x, const std::string& axes, bool keep) {
  return extreme(c, "amin", x, axes, keep);
}

std::string multiplied(NodeContext& c, const std::string& x, const std::string& axes, bool keep) {
  return c.helper("_prod") + "(" + x + ", " + axes + ", " + bool_text(keep) + ")";
}

std::string norm(NodeContext& c, const std::string& order, const std::string& x,
                 const std::string& axes, bool keep) {
  return of_doubles(c, "torch.linalg_vector_norm(" + as_floating(c, x) + ", " + order + ", " +
                           axes + keep_text(keep) + ")");
}

std::string norm_1(NodeContext& c, const std::string& x, const std::string& axes, bool keep) {
  return norm(c, "1", x, axes, keep);
}

// Its gradient at 0 is 0, where that of a root of a sum is infinite.
std::string norm_2(NodeContext& c, const std::string& x, const std::string& axes, bool keep) {
  return norm(c, "2", x, axes, keep);
}

std::string sum_of_squares(NodeContext& c, const std::string& x, const std::string& axes,
                           bool keep) {
  return summed(c, x + " * " + x, axes, keep);
}

std::string log_of_sum(NodeContext& c, const std::string& x, const std::string& axes, bool keep) {
  return of_doubles(c, "torch.log(" + summed(c, as_floating(c, x), axes, keep) + ")");
}

std::string log_sum_exp(NodeContext& c, const std::string& x, const std::string& axes, bool keep) {
  return of_doubles(c,
                    "torch.logsumexp(" + as_floating(c, x) + ", " + axes + keep_text(keep) + ")");
}

std::string unchanged(NodeContext&, const std::string& x) { return x; }
std::string absolute(NodeContext&, const std::string& x) { return "torch.abs(" + x + ")"; }
std::string squared(NodeContext&, const std::string& x) { return x + " * " + x; }
std::string logarithm(NodeContext& c, const std::string& x) {
  return of_doubles(c, "torch.log(" + as_floating(c, x) + ")");
}

// Axes as an attribute or an input; what they are now, or a List[int] of the source.
struct Axes {
  std::optional<std::vector<std::int64_t>> known;
  std::string list;
  bool given_later = false;  // only known when the model runs
};

Axes axes_of_node(NodeContext& c, const std::string& x) {
  Axes axes;
  axes.known = c.ints("axes");
  if (!axes.known && c.has(1)) axes.known = c.known_integers(1);
  axes.given_later = !axes.known && c.has(1);
  if (axes.given_later) {
    axes.list = c.int_list(1);
    return axes;
  }
  const bool all = !axes.known || axes.known->empty();
  if (all && !c.rank(0)) {
    axes.list = "[i for i in range(" + x + ".dim())]";
    return axes;
  }
  if (all) {
    axes.known.emplace();
    for (std::int64_t i = 0; i < *c.rank(0); ++i) axes.known->push_back(i);
  }
  axes.known = axes_of(*axes.known, c.rank(0));
  axes.list = list_text(*axes.known);
  return axes;
}

bool reduces_nothing(NodeContext& c) {
  if (c.int_or("noop_with_empty_axes", 0) == 0) return false;
  if (!c.has(1)) return !c.has_attribute("axes");
  const auto known = c.known_integers(1);
  return known && known->empty();
}

std::optional<std::int64_t> reduced_rank(NodeContext& c, const Axes& axes, bool keep) {
  if (keep) return c.rank(0);
  if (axes.given_later || !c.rank(0)) return std::nullopt;
  return std::max<std::int64_t>(*c.rank(0) - static_cast<std::int64_t>(axes.known->size()), 0);
}

void reduce(NodeContext& c, const Reduction& reduction) {
  const std::string x = c.tensor(0);
  if (reduces_nothing(c)) return c.set(0, reduction.apply(c, x), c.type(0), c.rank(0));
  const bool keep = c.int_or("keepdims", 1) != 0;
  const Axes axes = axes_of_node(c, x);
  const auto rank = reduced_rank(c, axes, keep);
  if (!axes.given_later) return c.set(0, reduction.reduce(c, x, axes.list, keep), c.type(0), rank);
  if (c.int_or("noop_with_empty_axes", 0) != 0) {
    const std::string text = reduction.apply(c, x) + " if len(" + axes.list + ") == 0 else " +
                             reduction.reduce(c, x, axes.list, keep);
    return c.set(0, text, c.type(0), rank);
  }
  const std::string list = c.helper("_axes") + "(" + axes.list + ", " + x + ".dim())";
  c.set(0, reduction.reduce(c, x, list, keep), c.type(0), rank);
}

// The sum or product of a shape's sizes, e.g. the number of elements.
bool set_reduced_integers(NodeContext& c, const std::string& sign) {
  const auto integers = c.integers(0);
  if (!integers || integers->empty() || c.rank(0) != 1 || c.type(0) != ElementType::int64)
    return false;
  const bool unknown = std::any_of(integers->begin(), integers->end(),
                                   [](const Integer& each) { return !each.known; });
  const bool sizes = std::all_of(integers->begin(), integers->end(),
                                 [](const Integer& each) { return each.not_negative; });
  if (!unknown || reduces_nothing(c) || (c.has(1) && !c.known_integers(1))) return false;
  std::string text;
  for (const Integer& each : *integers) text += (text.empty() ? "" : sign) + each.text();
  const std::int64_t rank = c.int_or("keepdims", 1) != 0 ? 1 : 0;
  c.set_integers(0, {Integer{std::nullopt, "(" + text + ")", sizes}}, rank);
  return true;
}

void reduce_sum(NodeContext& c) {
  if (!set_reduced_integers(c, " + ")) reduce(c, {summed, unchanged});
}
void reduce_prod(NodeContext& c) {
  if (!set_reduced_integers(c, " * ")) reduce(c, {multiplied, unchanged});
}
void reduce_mean(NodeContext& c) { reduce(c, {averaged, unchanged}); }
void reduce_max(NodeContext& c) { reduce(c, {largest, unchanged}); }
void reduce_min(NodeContext& c) { reduce(c, {smallest, unchanged}); }
void reduce_l1(NodeContext& c) { reduce(c, {norm_1, absolute}); }
void reduce_l2(NodeContext& c) { reduce(c, {norm_2, absolute}); }
void reduce_sum_square(NodeContext& c) { reduce(c, {sum_of_squares, squared}); }
void reduce_log_sum(NodeContext& c) { reduce(c, {log_of_sum, logarithm}); }
void reduce_log_sum_exp(NodeContext& c) { reduce(c, {log_sum_exp, unchanged}); }

void arg_extreme(NodeContext& c, const std::string& function) {
  const std::int64_t place = axis_of(c.int_or("axis", 0), c.rank(0));
  const std::string axis = std::to_string(place);
  const bool keep = c.int_or("keepdims", 1) != 0;
  const bool last = c.int_or("select_last_index", 0) != 0;
  const std::string x = c.tensor(0);
  std::string text = function + "(" + (last ? x + ".flip([" + axis + "])" : x) + ", " + axis +
                     (keep ? ", True" : "") + ")";
  if (last) text = x + ".size(" + axis + ") - 1 - " + text;
  const auto rank =
      c.rank(0) && !keep ? std::optional(std::max<std::int64_t>(*c.rank(0) - 1, 0)) : c.rank(0);
  c.set(0, text, ElementType::int64, rank);
}

void arg_max(NodeContext& c) { arg_extreme(c, "torch.argmax"); }
void arg_min(NodeContext& c) { arg_extreme(c, "torch.argmin"); }

void accumulate(NodeContext& c, const std::string& name) {
  const auto known = c.known_integers(1);
  const std::string axis = known && known->size() == 1
                               ? std::to_string(axis_of(known->front(), c.rank(0)))
                               : c.variable("axis", c.int_scalar(1));
  const bool reverse = c.int_or("reverse", 0) != 0;
  std::string text = c.tensor(0);
  if (reverse) text += ".flip([" + axis + "])";
  if (c.int_or("exclusive", 0) != 0) {
    text = c.helper("_" + name + "_before") + "(" + text + ", " + axis + ")";
  } else {
    text = "torch.cum" + name + "(" + text + ", " + axis + type_text(c) + ")";
  }
  if (reverse) text += ".flip([" + axis + "])";
  c.set(0, text, c.type(0), c.rank(0));
}

void cum_sum(NodeContext& c) { accumulate(c, "sum"); }
void cum_prod(NodeContext& c) { accumulate(c, "prod"); }

constexpr Operator kReductionOperators[] = {
    {"ArgMax", 1, arg_max, Folding::sum, Gradient::stops},
    {"ArgMin", 1, arg_min, Folding::sum, Gradient::stops},
    {"CumProd", 26, cum_prod, Folding::sum},
    {"CumSum", 11, cum_sum, Folding::sum},
    {"ReduceL1", 1, reduce_l1, Folding::sum},
    {"ReduceL2", 1, reduce_l2, Folding::sum},
    {"ReduceLogSum", 1, reduce_log_sum, Folding::sum},
    {"ReduceLogSumExp", 1, reduce_log_sum_exp, Folding::sum},
    {"ReduceMax", 1, reduce_max, Folding::sum},
    {"ReduceMean", 1, reduce_mean, Folding::sum},
    {"ReduceMin", 1, reduce_min, Folding::sum},
    {"ReduceProd", 1, reduce_prod, Folding::sum},
    {"ReduceSum", 1, reduce_sum, Folding::sum},
    {"ReduceSumSquare", 1, reduce_sum_square, Folding::sum},
};

}  // namespace

std::span<const Operator> reduction_operators() { return kReductionOperators; }

}  // namespace decent::onnx
