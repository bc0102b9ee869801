// Operators that create tensors, and their element types.

#include <algorithm>
#include <cstring>

#include "decent/core/script_text.h"
#include "decent/onnx/translate/operands.h"
#include "decent/onnx/translate/operators.h"

namespace decent::onnx {
namespace {

template <typename T>
Tensor tensor_of(ElementType type, std::vector<std::int64_t> dims, const std::vector<T>& values) {
  auto bytes = std::make_shared<std::vector<std::byte>>(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes->data(), values.data(), bytes->size());
  Tensor tensor;
  tensor.type = type;
  tensor.dims = std::move(dims);
  tensor.encoding = Encoding::typed;
  tensor.decoded = std::move(bytes);
  return tensor;
}

std::optional<Tensor> constant_of_attributes(const NodeContext& c) {
  if (const Tensor* value = c.tensor_attribute("value")) return *value;
  if (c.has_attribute("value_float")) {
    const std::vector<float> value{static_cast<float>(c.float_or("value_float", 0))};
    return tensor_of(ElementType::float32, {}, value);
  }
  if (c.has_attribute("value_int"))
    return tensor_of(ElementType::int64, {}, std::vector{c.int_or("value_int", 0)});
  if (const auto values = c.floats("value_floats"))
    return tensor_of(ElementType::float32, {static_cast<std::int64_t>(values->size())}, *values);
  if (const auto values = c.ints("value_ints"))
    return tensor_of(ElementType::int64, {static_cast<std::int64_t>(values->size())}, *values);
  return std::nullopt;
}

void constant(NodeContext& c) {
  auto tensor = constant_of_attributes(c);
  if (!tensor || tensor->type == ElementType::string)
    throw Unsupported("holds strings or a sparse tensor, which cannot be trained with");
  tensor->name = c.node().outputs.front();
  c.set_constant(0, std::make_shared<const Tensor>(std::move(*tensor)));
}

// Shapes of shapes: a few equal integers.
bool set_equal_integers(NodeContext& c, const Tensor* value) {
  const auto shape = c.known_integers(0);
  const bool whole = value != nullptr && value->type == ElementType::int64;
  if (!shape || shape->size() != 1 || !whole) return false;
  if (shape->front() < 0 || shape->front() > static_cast<std::int64_t>(kMaxIntegers)) return false;
  const Integer each = Integer::of(as_integers(*value).front());
  c.set_integers(0, std::vector(static_cast<std::size_t>(shape->front()), each), 1);
  return true;
}

Expression number(const Tensor* value) {
  if (value == nullptr) return 0.0;
  if (is_floating(value->type)) return as_doubles(*value).front();
  if (value->type == ElementType::boolean) return as_integers(*value).front() != 0;
  return as_integers(*value).front();
}

// The last arguments of functions that create tensors.
Arguments type_and_device(NodeContext& c, ElementType type) {
  return Arguments(keyword("dtype", c.dtype(type)), keyword("device", c.device()));
}

void constant_of_shape(NodeContext& c) {
  const Tensor* value = c.tensor_attribute("value");
  if (value != nullptr && value->count() != 1)
    throw Unsupported("has a 'value' of more than one element");
  if (set_equal_integers(c, value)) return;
  const ElementType type = c.as_computed(value != nullptr ? value->type : ElementType::float32);
  c.dtype(type);  // strings are refused
  const auto shape = c.integers(0);
  const auto& dims = c.input(0).dims;
  std::optional<std::int64_t> rank;
  if (shape) rank = static_cast<std::int64_t>(shape->size());
  if (!shape && dims && dims->size() == 1) rank = dims->front();
  c.set(0, call("torch.full", c.int_list(0), number(value), type_and_device(c, type)), type, rank);
}

constexpr std::int64_t kMaxRangeSpan = 4 * 1024 * 1024;

// A range that is the same in every run.
bool set_known_range(NodeContext& c) {
  if (c.type(0) != ElementType::int64) return false;
  const auto start = c.known_integers(0);
  const auto limit = c.known_integers(1);
  const auto delta = c.known_integers(2);
  if (!start || !limit || !delta || start->size() != 1 || limit->size() != 1 || delta->size() != 1)
    return false;
  const std::int64_t step = delta->front();
  if (step == 0) throw Unsupported("has a delta of 0");
  const bool up = step > 0;
  std::int64_t span = 0;
  if (__builtin_sub_overflow(up ? limit->front() : start->front(),
                             up ? start->front() : limit->front(), &span) ||
      span > kMaxRangeSpan)
    return false;
  std::vector<std::int64_t> values;
  const std::int64_t stride = std::clamp(step, -kMaxRangeSpan - 1, kMaxRangeSpan + 1);
  for (std::int64_t passed = 0; passed < span; passed += up ? stride : -stride)
    values.push_back(up ? start->front() + passed : start->front() - passed);
  const auto count = static_cast<std::int64_t>(values.size());
  c.set_constant(0, std::make_shared<const Tensor>(make_tensor({count}, values)));
  return true;
}

// Whether a range goes from 0 up in steps of 1 to a size. torch.arange refuses other ranges if they
// are empty.
bool is_count(NodeContext& c) {
  const auto start = c.integers(0);
  const auto limit = c.integers(1);
  const auto delta = c.integers(2);
  return start && limit && delta && start->size() == 1 && limit->size() == 1 &&
         delta->size() == 1 && start->front().known == 0 && delta->front().known == 1 &&
         limit->front().not_negative;
}

void range(NodeContext& c) {
  if (set_known_range(c)) return;
  const ElementType type = c.type(0);
  if (is_integer(type) && is_count(c))
    return c.set(0, call("torch.arange", c.int_scalar(1), type_and_device(c, type)), type, 1);
  const auto scalar = [&](std::size_t input) {
    return is_floating(type) ? c.float_scalar(input) : c.int_scalar(input);
  };
  const Expression made = call(c.helper(is_floating(type) ? "_float_range" : "_range"), scalar(0),
                               scalar(1), scalar(2), c.device());
  c.set(0, method(made, "to", c.dtype(type)), type, 1);
}

void eye_like(NodeContext& c) {
  const ElementType type = c.type_attribute("dtype", c.type(0));
  const Expression eye = call(c.helper("_eye"), c.tensor(0), c.int_or("k", 0));
  c.set(0, method(eye, "to", c.dtype(type)), type, 2);
}

void one_hot(NodeContext& c) {
  const auto rank = c.rank(0) ? std::optional(*c.rank(0) + 1) : std::nullopt;
  const Expression depth = is_floating(c.type(1)) ? call("int", c.tensor(1)) : c.int_scalar(1);
  c.set(0,
        call(c.helper("_one_hot"), c.tensor(0), depth, c.tensor(2),
             axis_of(c.int_or("axis", -1), rank)),
        c.type(2), rank);
}

void trilu(NodeContext& c) {
  Arguments arguments(c.tensor(0));
  if (c.has(1)) arguments.add(c.int_scalar(1));
  const char* function = c.int_or("upper", 1) != 0 ? "torch.triu" : "torch.tril";
  c.set(0, call(function, arguments), c.type(0), c.rank(0));
}

// A cast of a shape's integers; the known ones tell whether they fit the type.
bool set_cast_integers(NodeContext& c, ElementType type) {
  const auto integers = c.integers(0);
  const bool wide = type == ElementType::int64 || type == ElementType::int32;
  if (!integers || c.rank(0).value_or(2) > 1 || c.type(0) == ElementType::boolean) return false;
  if (wide) {
    c.set_integers(0, *integers, *c.rank(0), type);
    return true;
  }
  if (!is_floating(type)) return false;
  c.set(0, c.text_of(Value::of_integers(*integers, *c.rank(0), type)), type, c.rank(0));
  return true;
}

void cast_to(NodeContext& c, ElementType type) {
  if (type == c.type(0)) return c.set_value(0, c.input(0));
  if (set_cast_integers(c, type)) return;
  c.dtype(c.type(0));  // strings are refused
  c.set(0, method(c.tensor(0), "to", c.dtype(type)), type, c.rank(0));
}

void cast(NodeContext& c) { cast_to(c, c.type_attribute("to", ElementType::undefined)); }

void cast_like(NodeContext& c) { cast_to(c, c.type(1)); }

void bit_cast(NodeContext& c) {
  const ElementType type = c.type_attribute("to", ElementType::undefined);
  if (size_of(type) != size_of(c.type(0)))
    throw Unsupported("has types of different width, " + std::string(name_of(c.type(0))) + " and " +
                      std::string(name_of(type)));
  c.set(0, call("torch.view_copy", c.tensor(0), keyword("dtype", c.dtype(type))), type, c.rank(0));
}

constexpr Operator kCreationOperators[] = {
    {"BitCast", 26, bit_cast, Folding::broadcast, Gradient::stops},
    {"Cast", 6, cast, Folding::broadcast},
    {"CastLike", 15, cast_like, Folding::first},
    {"Constant", 1, constant},
    {"ConstantOfShape", 9, constant_of_shape, Folding::product},
    {"EyeLike", 9, eye_like, Folding::broadcast, Gradient::stops},
    {"OneHot", 9, one_hot},
    {"Range", 11, range, Folding::never, Gradient::stops},
    {"Trilu", 14, trilu, Folding::broadcast},
};

}  // namespace

std::span<const Operator> creation_operators() { return kCreationOperators; }

}  // namespace decent::onnx
