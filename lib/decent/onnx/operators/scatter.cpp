// Elements put into tensors by index.

#include "decent/core/script_text.h"
#include "decent/onnx/translate/operands.h"
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
  const Expression indices =
      call(c.helper("_element_indices"), c.tensor(1), size_of_dimension(c, 0, axis));
  const Arguments arguments(c.tensor(0), axis, indices, c.tensor(2));
  if (reduce == "none") return set_like_input(c, call("torch.scatter", arguments));
  if (reduce == "add") return set_like_input(c, call("torch.scatter_add", arguments));
  const std::string reduction = string_literal(torch_reduction(reduce));
  set_like_input(c, call("torch.scatter_reduce", arguments, reduction));
}

void scatter_nd(NodeContext& c) {
  const std::string reduce = scatter_reduction(c);
  const Arguments arguments(c.tensor(0), c.tensor(1), c.tensor(2));
  if (reduce == "none" || reduce == "add")
    return set_like_input(c, call(c.helper("_scatter_nd"), arguments, reduce == "add"));
  const std::string reduction = string_literal(torch_reduction(reduce));
  set_like_input(c, call(c.helper("_scatter_nd_reduce"), arguments, reduction));
}

constexpr Operator kScatterOperators[] = {
    {"Scatter", 9, scatter_elements, Folding::sum, Gradient::flows, 10},
    {"ScatterElements", 11, scatter_elements, Folding::sum},
    {"ScatterND", 11, scatter_nd, Folding::sum},
};

}  // namespace

std::span<const Operator> scatter_operators() { return kScatterOperators; }

}  // namespace decent::onnx
