#include "decent/onnx/translate/constant_folder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace decent::onnx {
namespace {

// Larger results stay operators, because constants would be stored in model.pt.
constexpr double kMaxFoldedElements = 4 * 1024 * 1024;

double broadcast_count(const std::vector<const Value*>& inputs) {
  std::size_t rank = 0;
  for (const Value* input : inputs) rank = std::max(rank, input->dims->size());
  double product = 1;
  for (std::size_t back = 1; back <= rank; ++back) {
    std::int64_t largest = 0;
    for (const Value* input : inputs) {
      if (back > input->dims->size()) continue;
      largest = std::max(largest, (*input->dims)[input->dims->size() - back]);
    }
    product *= static_cast<double>(largest);
  }
  return product;
}

double sum_count(const std::vector<const Value*>& inputs) {
  double sum = 1;
  for (const Value* input : inputs) sum += static_cast<double>(input->constant->count());
  return sum;
}

double pair_count(const std::vector<const Value*>& inputs) {
  double product = 1;
  for (const Value* input : inputs) product *= static_cast<double>(input->constant->count());
  return product;
}

double product_of(const Value& value) {
  double product = 1;
  for (const double each : as_doubles(*value.constant)) product *= std::max(1.0, std::abs(each));
  return product;
}

double product_count(const std::vector<const Value*>& inputs) {
  if (inputs.size() == 1) return product_of(*inputs.front());
  double product = static_cast<double>(inputs.front()->constant->count());
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (!inputs[i]->integers) return std::numeric_limits<double>::infinity();
    product *= product_of(*inputs[i]);
  }
  return product;
}

double most_elements(const Operator& known, const std::vector<const Value*>& inputs) {
  switch (known.folding) {
    case Folding::never:
      return std::numeric_limits<double>::infinity();
    case Folding::broadcast:
      return broadcast_count(inputs);
    case Folding::sum:
      return sum_count(inputs);
    case Folding::pairs:
    case Folding::first:
      return pair_count(inputs);
    case Folding::product:
      return product_count(inputs);
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace

bool ConstantFolder::can_fold(const Node& node, const Operator& known) const {
  if (is_folding_ || !evaluate_ || known.folding == Folding::never) return false;
  std::vector<const Value*> inputs;
  for (const std::string& name : node.inputs) {
    if (name.empty() || (known.folding == Folding::first && !inputs.empty())) continue;
    const Value* value = module_.find(name);
    if (value == nullptr || !value->is_constant() || value->type == ElementType::string)
      return false;
    inputs.push_back(value);
  }
  if (inputs.empty()) return false;
  return most_elements(known, inputs) <= kMaxFoldedElements;
}

void ConstantFolder::fold(NodeContext& context, const Operator& known) {
  for (Tensor& outcome : outcomes(context, known)) {
    const std::string name = outcome.name;
    module_.define(name, Value::of_constant(std::make_shared<const Tensor>(std::move(outcome))));
  }
}

// Sets the current method aside while a method for the node is written.
std::vector<Tensor> ConstantFolder::outcomes(NodeContext& context, const Operator& known) {
  MethodSource outer = std::exchange(module_.method(), MethodSource());
  is_folding_ = true;
  const auto restore = [&] {
    module_.method() = std::move(outer);
    is_folding_ = false;
  };
  try {
    known.translate(context);
    std::vector<Tensor> tensors = evaluate(outputs_to_compute(context.node()));
    restore();
    return tensors;
  } catch (...) {
    restore();
    throw;
  }
}

// The outputs that the translation set, except integers, which it already turned into constants.
std::vector<std::string> ConstantFolder::outputs_to_compute(const Node& node) {
  std::vector<std::string> names;
  for (const std::string& name : node.outputs) {
    const Value* value = name.empty() ? nullptr : module_.find_here(name);
    if (value == nullptr || value->is_constant()) continue;
    if (value->kind != Value::Kind::tensor) throw Unsupported("makes a sequence of constants");
    names.push_back(name);
  }
  return names;
}

// Runs the written method, as a module that returns the values of these names.
std::vector<Tensor> ConstantFolder::evaluate(const std::vector<std::string>& names) {
  if (names.empty()) return {};
  Arguments results;
  for (const std::string& name : names) results.add(module_.text_of(*module_.find_here(name)));
  module_.method().add("return " + list(results).text());
  ModuleSource source;
  source.methods =
      module_.method().text("def forward(self) -> List[Tensor]:", "torch.device(\"cpu\")");
  std::vector<Tensor> tensors = evaluate_with_constants(std::move(source));
  for (std::size_t i = 0; i < names.size(); ++i) tensors.at(i).name = names[i];
  return tensors;
}

// Moves the constants in and back, because there may be many.
std::vector<Tensor> ConstantFolder::evaluate_with_constants(ModuleSource source) {
  auto& constants = module_.source().constants;
  std::swap(source.constants, constants);
  try {
    std::vector<Tensor> tensors = evaluate_(source);
    std::swap(source.constants, constants);
    return tensors;
  } catch (...) {
    std::swap(source.constants, constants);
    throw;
  }
}

}  // namespace decent::onnx
