#include "decent/model/file_scaling.h"

#include <ATen/ops/tensor.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <memory>

#include "decent/core/error.h"
#include "decent/model/model.h"

namespace decent {
namespace {

using torch::jit::Graph;
using torch::jit::Value;

// A constant on the device of the value `like` and with its type, so that the file runs on a GPU
// and in half precision.
Value* constant_like(Graph& graph, const std::vector<double>& values, Value* like) {
  const at::Tensor numbers = at::tensor(values, at::kFloat);
  Value* constant = graph.insertConstant(values.size() == 1 ? numbers.reshape({}) : numbers);
  return graph.insert(at::aten::type_as, {constant, like});
}

// Applies `change` to `value` with dimension 1 moved to the end, where numbers for each of its
// indices broadcast whatever the other dimensions are.
template <class Change>
Value* by_place(Graph& graph, Value* value, const Scaling& scaling, const Change& change) {
  const bool by_one = scaling.mean.size() == 1 && scaling.std.size() == 1;
  if (!by_one) value = graph.insert(at::aten::movedim, {value, 1, -1});
  value = change(value);
  return by_one ? value : graph.insert(at::aten::movedim, {value, -1, 1});
}

Value* scaled(Graph& graph, Value* value, const Scaling& scaling) {
  return by_place(graph, value, scaling, [&](Value* x) {
    Value* mean = constant_like(graph, scaling.mean, x);
    Value* std = constant_like(graph, scaling.std, x);
    return graph.insert(at::aten::div, {graph.insert(at::aten::sub, {x, mean}), std});
  });
}

Value* scaled_back(Graph& graph, Value* value, const Scaling& scaling) {
  return by_place(graph, value, scaling, [&](Value* x) {
    Value* mean = constant_like(graph, scaling.mean, x);
    Value* std = constant_like(graph, scaling.std, x);
    return graph.insert(at::aten::add, {graph.insert(at::aten::mul, {x, std}), mean});
  });
}

void scale_argument(Graph& graph, const ScaledArgument& argument) {
  Value* given = graph.inputs().at(argument.place + 1);  // behind self
  torch::jit::Node* before = *graph.nodes().begin();     // the return, if there is no other
  const torch::jit::WithInsertPoint here(before);
  Value* value = given;
  for (const Scaling& each : argument.scalings) value = scaled(graph, value, each);
  given->replaceAllUsesAfterNodeWith(value->node(), value);
}

bool is_tensor(const c10::TypePtr& type) { return type->kind() == c10::TypeKind::TensorType; }

}  // namespace

void check_scaling(const Model& model, const FileScaling& scaling) {
  const c10::FunctionSchema schema = model.module().get_method("forward").function().getSchema();
  for (const ScaledArgument& each : scaling.arguments) {
    const c10::Argument& argument = schema.arguments().at(each.place + 1);
    if (is_tensor(argument.type())) continue;
    throw UserError("data.export_transforms: argument '" + argument.name() + "' of forward is " +
                    argument.type()->repr_str() +
                    ", not a tensor, so that it cannot be normalized");
  }
  if (scaling.output.empty() || is_tensor(schema.returns().at(0).type())) return;
  throw UserError("data.export_transforms: the target is normalized, and forward returns " +
                  schema.returns().at(0).type()->repr_str() +
                  "; only one tensor can be brought back to the data's units");
}

void add_scaling(torch::jit::Module& module, const FileScaling& scaling) {
  Graph& graph = *torch::jit::toGraphFunction(module.get_method("forward").function()).graph();
  for (const ScaledArgument& each : scaling.arguments) scale_argument(graph, each);
  const torch::jit::WithInsertPoint at_the_end(graph.return_node());
  Value* value = graph.outputs().at(0);
  for (auto each = scaling.output.rbegin(); each != scaling.output.rend(); ++each)
    value = scaled_back(graph, value, *each);
  graph.return_node()->replaceInput(0, value);
}

}  // namespace decent
