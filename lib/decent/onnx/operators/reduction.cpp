// Reductions over axes, and running sums.

#include <algorithm>

#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

// The axes that a reduction goes over, a List[int], and whether it keeps their dimensions.
struct Over {
  Expression axes;
  bool keep;

  // The arguments in the form of PyTorch's functions.
  Arguments arguments() const {
    return keep ? Arguments(axes, keyword("keepdim", true)) : Arguments(axes);
  }
};

// A reduction in PyTorch.
struct Reduction {
  Expression (*reduce)(NodeContext& c, const Expression& x, const Over& over);
  // The reduction over no axes at all, which ONNX allows.
  Expression (*apply)(NodeContext& c, const Expression& x);
};

// Integers keep their type, while torch would convert them to int64.
Arguments type_of_sum(NodeContext& c) {
  if (is_floating(c.type(0)) || c.type(0) == ElementType::int64) return Arguments();
  return Arguments(keyword("dtype", c.dtype(c.type(0))));
}

Expression summed(NodeContext& c, const Expression& x, const Over& over) {
  return call("torch.sum", x, over.arguments(), type_of_sum(c));
}

// The mean of integers is truncated to an integer, and so is a norm.
Expression of_doubles(NodeContext& c, const Expression& x) {
  return is_floating(c.type(0)) ? x : method(x, "to", c.dtype(c.type(0)));
}

Expression as_floating(NodeContext& c, const Expression& x) {
  return is_floating(c.type(0)) ? x : method(x, "to", "torch.float64");
}

Expression averaged(NodeContext& c, const Expression& x, const Over& over) {
  return of_doubles(c, call("torch.mean", as_floating(c, x), over.arguments()));
}

Expression extreme(NodeContext& c, const std::string& function, const Expression& x,
                   const Over& over) {
  // Works for empty tensors too, which amax and amin refuse.
  if (c.type(0) == ElementType::boolean)
    return call(function == "amax" ? "torch.any" : "torch.all", x, over.arguments());
  if (!is_floating(c.type(0))) return call("torch." + function, x, over.arguments());
  return call(c.helper("_" + function), x, over.axes, over.keep);
}

Expression largest(NodeContext& c, const Expression& x, const Over& over) {
  return extreme(c, "amax", x, over);
}

Expression smallest(NodeContext& c, const Expression& x, const Over& over) {
  return extreme(c, "amin", x, over);
}

Expression multiplied(NodeContext& c, const Expression& x, const Over& over) {
  return call(c.helper("_prod"), x, over.axes, over.keep);
}

Expression norm(NodeContext& c, int order, const Expression& x, const Over& over) {
  return of_doubles(c,
                    call("torch.linalg_vector_norm", as_floating(c, x), order, over.arguments()));
}

Expression norm_1(NodeContext& c, const Expression& x, const Over& over) {
  return norm(c, 1, x, over);
}

// Its gradient at 0 is 0, while that of the root of a sum would be infinite.
Expression norm_2(NodeContext& c, const Expression& x, const Over& over) {
  return norm(c, 2, x, over);
}

Expression squared(NodeContext&, const Expression& x) { return binary(x, "*", x); }

Expression sum_of_squares(NodeContext& c, const Expression& x, const Over& over) {
  return summed(c, squared(c, x), over);
}

Expression log_of_sum(NodeContext& c, const Expression& x, const Over& over) {
  return of_doubles(c, call("torch.log", summed(c, as_floating(c, x), over)));
}

Expression log_sum_exp(NodeContext& c, const Expression& x, const Over& over) {
  return of_doubles(c, call("torch.logsumexp", as_floating(c, x), over.arguments()));
}

Expression unchanged(NodeContext&, const Expression& x) { return x; }
Expression absolute(NodeContext&, const Expression& x) { return call("torch.abs", x); }
Expression logarithm(NodeContext& c, const Expression& x) {
  return of_doubles(c, call("torch.log", as_floating(c, x)));
}

// Axes as an attribute or an input: known numbers, or a List[int] of the source.
struct Axes {
  std::optional<std::vector<std::int64_t>> known;
  std::string text;
  bool given_later = false;  // only known when the model runs
};

Axes axes_of_node(NodeContext& c, const Expression& x) {
  Axes axes;
  axes.known = c.ints("axes");
  if (!axes.known && c.has(1)) axes.known = c.known_integers(1);
  axes.given_later = !axes.known && c.has(1);
  if (axes.given_later) {
    axes.text = c.int_list(1);
    return axes;
  }
  const bool all = !axes.known || axes.known->empty();
  if (all && !c.rank(0)) {
    axes.text = "[i for i in " + call("range", method(x, "dim")).text() + "]";
    return axes;
  }
  if (all) {
    axes.known.emplace();
    for (std::int64_t i = 0; i < *c.rank(0); ++i) axes.known->push_back(i);
  }
  axes.known = axes_of(*axes.known, c.rank(0));
  axes.text = list(*axes.known).text();
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
  const Expression x = c.tensor(0);
  if (reduces_nothing(c)) return c.set(0, reduction.apply(c, x), c.type(0), c.rank(0));
  const bool keep = c.int_or("keepdims", 1) != 0;
  const Axes axes = axes_of_node(c, x);
  const auto rank = reduced_rank(c, axes, keep);
  if (axes.given_later && c.int_or("noop_with_empty_axes", 0) != 0) {
    const Expression has_none = binary(call("len", axes.text), "==", 0);
    const Expression reduced = reduction.reduce(c, x, {axes.text, keep});
    return c.set(0, conditional(reduction.apply(c, x), has_none, reduced), c.type(0), rank);
  }
  const Expression places =
      axes.given_later ? call(c.helper("_axes"), axes.text, method(x, "dim")) : axes.text;
  c.set(0, reduction.reduce(c, x, {places, keep}), c.type(0), rank);
}

// The sum or product of a shape's sizes, e.g. the number of elements.
bool set_reduced_integers(NodeContext& c, const char* sign) {
  const auto integers = c.integers(0);
  if (!integers || integers->empty() || c.rank(0) != 1 || c.type(0) != ElementType::int64)
    return false;
  const bool unknown = std::any_of(integers->begin(), integers->end(),
                                   [](const Integer& each) { return !each.known; });
  const bool sizes = std::all_of(integers->begin(), integers->end(),
                                 [](const Integer& each) { return each.not_negative; });
  if (!unknown || reduces_nothing(c) || (c.has(1) && !c.known_integers(1))) return false;
  Expression result = integers->front();
  for (std::size_t i = 1; i < integers->size(); ++i) result = binary(result, sign, (*integers)[i]);
  const std::int64_t rank = c.int_or("keepdims", 1) != 0 ? 1 : 0;
  c.set_integers(0, {Integer::computed(result, sizes)}, rank);
  return true;
}

void reduce_sum(NodeContext& c) {
  if (!set_reduced_integers(c, "+")) reduce(c, {summed, unchanged});
}
void reduce_prod(NodeContext& c) {
  if (!set_reduced_integers(c, "*")) reduce(c, {multiplied, unchanged});
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
  const std::int64_t axis = axis_of(c.int_or("axis", 0), c.rank(0));
  const bool keep = c.int_or("keepdims", 1) != 0;
  const bool last = c.int_or("select_last_index", 0) != 0;
  const Expression x = c.tensor(0);
  Arguments arguments(last ? method(x, "flip", list(axis)) : x, axis);
  if (keep) arguments.add(true);
  Expression place = call(function, arguments);
  if (last) place = binary(binary(method(x, "size", axis), "-", 1), "-", place);
  const auto rank =
      c.rank(0) && !keep ? std::optional(std::max<std::int64_t>(*c.rank(0) - 1, 0)) : c.rank(0);
  c.set(0, place, ElementType::int64, rank);
}

void arg_max(NodeContext& c) { arg_extreme(c, "torch.argmax"); }
void arg_min(NodeContext& c) { arg_extreme(c, "torch.argmin"); }

void accumulate(NodeContext& c, const std::string& name) {
  const auto known = c.known_integers(1);
  const Expression axis = known && known->size() == 1
                              ? Expression(axis_of(known->front(), c.rank(0)))
                              : c.variable("axis", c.int_scalar(1));
  const auto turned = [&](const Expression& x) {
    return c.int_or("reverse", 0) != 0 ? method(x, "flip", list(axis)) : x;
  };
  const Expression x = turned(c.tensor(0));
  const bool exclusive = c.int_or("exclusive", 0) != 0;
  c.set(0,
        turned(exclusive ? call(c.helper("_" + name + "_before"), x, axis)
                         : call("torch.cum" + name, x, axis, type_of_sum(c))),
        c.type(0), c.rank(0));
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
