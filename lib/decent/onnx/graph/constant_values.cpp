#include "decent/onnx/graph/constant_values.h"

#include <cmath>

#include "decent/onnx/format/elements.h"

namespace decent::onnx {
namespace {

constexpr std::int64_t kMaxSmallElements = 4096;
constexpr std::size_t kDeepestConstant = 64;

using Inputs = std::vector<const SmallConstant*>;
using Outcome = std::optional<SmallConstant>;

Outcome of_tensor(const Tensor& tensor) {
  if (tensor.type == ElementType::string || tensor.count() > kMaxSmallElements) return std::nullopt;
  return SmallConstant{tensor.type, tensor.dims, as_doubles(tensor)};
}

template <typename T>
Outcome of_list(ElementType type, const std::vector<T>& list) {
  if (list.size() > static_cast<std::size_t>(kMaxSmallElements)) return std::nullopt;
  return SmallConstant{type, {static_cast<std::int64_t>(list.size())}, {list.begin(), list.end()}};
}

Outcome of_constant_node(const Node& node) {
  if (node.attributes.size() != 1) return std::nullopt;
  const Attribute::Value& value = node.attributes.front().value;
  if (const auto* tensor = std::get_if<Tensor>(&value)) return of_tensor(*tensor);
  if (const auto* number = std::get_if<float>(&value))
    return SmallConstant{ElementType::float32, {}, {*number}};
  if (const auto* number = std::get_if<std::int64_t>(&value))
    return SmallConstant{ElementType::int64, {}, {static_cast<double>(*number)}};
  if (const auto* list = std::get_if<std::vector<float>>(&value))
    return of_list(ElementType::float32, *list);
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value))
    return of_list(ElementType::int64, *list);
  return std::nullopt;
}

Outcome with_type(SmallConstant constant, ElementType type) {
  if (is_integer(type)) {
    for (double& value : constant.values) value = std::trunc(value);
  } else if (type == ElementType::float32 && is_floating(constant.type)) {
    for (double& value : constant.values) value = static_cast<float>(value);
  }
  constant.type = type;
  return constant;
}

Outcome cast(const Node& node, const Inputs& inputs) {
  if (node.op_type == "CastLike") return with_type(*inputs[0], inputs[1]->type);
  const Attribute* to = node.find("to");
  const auto* type = to == nullptr ? nullptr : std::get_if<std::int64_t>(&to->value);
  if (type == nullptr) return std::nullopt;
  return with_type(*inputs[0], element_type(*type));
}

// Operators that only change the shape of integers and scalars. Shapes of more than one dimension
// are not distinguished, because no caller needs them.
Outcome flattened(const SmallConstant& constant, bool to_scalar) {
  SmallConstant result = constant;
  result.dims.clear();
  if (!to_scalar || constant.values.size() != 1)
    result.dims = {static_cast<std::int64_t>(constant.values.size())};
  return result;
}

Outcome concat(const Inputs& inputs) {
  SmallConstant result{inputs.front()->type, {0}, {}};
  for (const SmallConstant* input : inputs) {
    if (input->dims.size() != 1) return std::nullopt;
    result.values.insert(result.values.end(), input->values.begin(), input->values.end());
  }
  if (result.values.size() > static_cast<std::size_t>(kMaxSmallElements)) return std::nullopt;
  result.dims = {static_cast<std::int64_t>(result.values.size())};
  return result;
}

Outcome filled(const SmallConstant& one, const SmallConstant& shape) {
  if (one.values.size() != 1 || !is_integer(shape.type)) return std::nullopt;
  SmallConstant result{one.type, {}, {}};
  double count = 1;
  for (const double dim : shape.values) {
    if (!(dim >= 0 && dim <= static_cast<double>(kMaxSmallElements)) ||
        (count *= dim) > static_cast<double>(kMaxSmallElements))
      return std::nullopt;
    result.dims.push_back(static_cast<std::int64_t>(dim));
  }
  result.values.assign(static_cast<std::size_t>(count), one.values.front());
  return result;
}

Outcome range(const Inputs& inputs) {
  for (const SmallConstant* input : inputs) {
    if (input->values.size() != 1) return std::nullopt;
  }
  const double begin = inputs[0]->values.front();
  const double end = inputs[1]->values.front();
  const double step = inputs[2]->values.front();
  const double count = std::ceil((end - begin) / step);
  if (!(count >= 0 && count <= static_cast<double>(kMaxSmallElements))) return std::nullopt;
  SmallConstant result{inputs[0]->type, {static_cast<std::int64_t>(count)}, {}};
  for (double i = 0; i < count; ++i) result.values.push_back(begin + i * step);
  return result;
}

std::optional<double> arithmetic(const std::string& op, double a, double b, bool integers) {
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Pow") return std::pow(a, b);
  if (op == "Div" && integers) return b == 0 ? std::nullopt : std::optional(std::trunc(a / b));
  return op == "Div" ? std::optional(a / b) : std::nullopt;
}

Outcome of_two(const Node& node, const Inputs& inputs) {
  const SmallConstant& a = *inputs[0];
  const SmallConstant& b = *inputs[1];
  if (a.dims != b.dims && !a.dims.empty() && !b.dims.empty()) return std::nullopt;
  SmallConstant result = a.dims.empty() ? b : a;
  result.type = a.type;
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const auto value = arithmetic(node.op_type, a.values[a.dims.empty() ? 0 : i],
                                  b.values[b.dims.empty() ? 0 : i], is_integer(a.type));
    if (!value) return std::nullopt;
    result.values[i] = *value;
  }
  return result;
}

Outcome of_one(const std::string& op, const SmallConstant& input) {
  SmallConstant result = input;
  for (double& value : result.values) {
    if (op == "Sqrt") value = std::sqrt(value);
    if (op == "Reciprocal") value = 1 / value;
    if (op == "Neg") value = -value;
  }
  return result;
}

Outcome evaluate(const Node& node, const Inputs& inputs) {
  const std::string& op = node.op_type;
  const auto has = [&](std::size_t count) { return inputs.size() == count; };
  if (op == "Identity" && has(1)) return *inputs[0];
  if ((op == "Cast" && has(1)) || (op == "CastLike" && has(2))) return cast(node, inputs);
  if (op == "Reshape" && has(2)) return flattened(*inputs[0], inputs[1]->values.empty());
  if (op == "Unsqueeze" && !inputs.empty()) return flattened(*inputs[0], false);
  if (op == "Squeeze" && !inputs.empty()) return flattened(*inputs[0], true);
  if (op == "Concat" && !inputs.empty()) return concat(inputs);
  if (op == "Expand" && has(2)) return filled(*inputs[0], *inputs[1]);
  if (op == "Range" && has(3)) return range(inputs);
  if ((op == "Sqrt" || op == "Reciprocal" || op == "Neg") && has(1)) return of_one(op, *inputs[0]);
  if (has(2)) return of_two(node, inputs);
  return std::nullopt;
}

}  // namespace

ConstantValues::ConstantValues(const Graph& graph, Producer producer)
    : producer_(std::move(producer)) {
  for (const Tensor& tensor : graph.initializers) initializers_[tensor.name] = &tensor;
}

const SmallConstant* ConstantValues::find(const std::string& name) const { return find(name, 0); }

const SmallConstant* ConstantValues::find(const std::string& name, std::size_t depth) const {
  const auto known = known_.find(name);
  if (known != known_.end()) return known->second ? &*known->second : nullptr;
  if (name.empty() || depth > kDeepestConstant) return nullptr;
  std::optional<SmallConstant> value;
  const auto initializer = initializers_.find(name);
  if (initializer != initializers_.end()) {
    value = of_tensor(*initializer->second);
  } else if (const Node* node = producer_(name)) {
    value = compute(*node, depth);
  }
  const auto stored = known_.emplace(name, std::move(value)).first;
  return stored->second ? &*stored->second : nullptr;
}

std::optional<SmallConstant> ConstantValues::compute(const Node& node, std::size_t depth) const {
  if (!node.domain.empty() || node.outputs.size() != 1) return std::nullopt;
  if (node.op_type == "Constant") return of_constant_node(node);
  Inputs inputs;
  for (const std::string& name : node.inputs) {
    // Only the type of CastLike's second input counts, and for the constants of interest it is
    // floating-point.
    static const SmallConstant kAnyFloat{ElementType::float32, {}, {0}};
    const bool is_type = node.op_type == "CastLike" && inputs.size() == 1;
    const SmallConstant* input = is_type ? &kAnyFloat : find(name, depth + 1);
    if (input == nullptr) return std::nullopt;
    inputs.push_back(input);
  }
  return evaluate(node, inputs);
}

}  // namespace decent::onnx
