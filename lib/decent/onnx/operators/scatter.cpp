// Elements put into tensors by index.

#include "decent/onnx/translate/expressions.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

// How several updates of one element, and its old value, become one.
std::string scatter_reduction(NodeContext& c) {
  const std::string name = c.string_or("reduction", "none");
  if (name != "none" && name != "add" && name != "mul" && name != "min" && name != "max")
    throw Unsupported("has the reduction '" + name + "'");
  return name;
}

std::string torch_reduction(const std::string& name) {
  if (name == "add") return "sum";
  return name == "mul" ? "prod" : "a" + name;
}

void scatter_elements(NodeContext& c) {
  const std::string reduce = scatter_reduction(c);
  const std::int64_t axis = axis_of(c.int_or("axis", 0), c.rank(0));
  std::string arguments = "(" + c.tensor(0) + ", " + std::to_string(axis) + ", " +
                          c.helper("_element_indices") + "(" + c.tensor(1) + ", " +
                          size_of_dimension(c, 0, axis).text() + "), " + c.tensor(2);
  if (reduce == "none") return c.set(0, "torch.scatter" + arguments + ")", c.type(0), c.rank(0));
  if (reduce == "add") return c.set(0, "torch.scatter_add" + arguments + ")", c.type(0), c.rank(0));
  arguments += ", \"" + torch_reduction(reduce) + "\")";
  c.set(0, "torch.scatter_reduce" + arguments, c.type(0), c.rank(0));
}

void scatter_nd(NodeContext& c) {
  const std::string reduce = scatter_reduction(c);
  const std::string arguments = "(" + c.tensor(0) + ", " + c.tensor(1) + ", " + c.tensor(2) + ", ";
  const std::string text =
      reduce == "none" || reduce == "add"
          ? c.helper("_scatter_nd") + arguments + bool_text(reduce == "add") + ")"
          : c.helper("_scatter_nd_reduce") + arguments + "\"" + torch_reduction(reduce) + "\")";
  c.set(0, text, c.type(0), c.rank(0));
}

constexpr Operator kScatterOperators[] = {
    {"Scatter", 9, scatter_elements, Folding::sum, Gradient::flows, 10},
    {"ScatterElements", 11, scatter_elements, Folding::sum},
    {"ScatterND", 11, scatter_nd, Folding::sum},
};

}  // namespace

std::span<const Operator> scatter_operators() { return kScatterOperators; }

}  // namespace decent::onnx
