#include "decent/onnx/translate/value.h"

#include <algorithm>

namespace decent::onnx {

Value Value::of_constant(std::shared_ptr<const Tensor> tensor) {
  Value value;
  value.type = tensor->type;
  value.rank = static_cast<std::int64_t>(tensor->dims.size());
  value.dims = tensor->dims;
  const bool whole = is_integer(tensor->type) || tensor->type == ElementType::boolean;
  if (whole && tensor->dims.size() <= 1 &&
      tensor->count() <= static_cast<std::int64_t>(kMaxIntegers)) {
    value.integers.emplace();
    for (const std::int64_t each : as_integers(*tensor))
      value.integers->push_back(Integer::of(each));
  }
  value.constant = std::move(tensor);
  return value;
}

Value Value::of_integers(std::vector<Integer> integers, std::int64_t rank, ElementType type) {
  const bool known = std::all_of(integers.begin(), integers.end(),
                                 [](const Integer& each) { return each.known.has_value(); });
  Value value;
  value.type = type;
  value.rank = rank == 0 && integers.size() == 1 ? 0 : 1;
  value.dims.emplace();
  if (value.rank == 1) value.dims->push_back(static_cast<std::int64_t>(integers.size()));
  if (known && type == ElementType::int64) {
    std::vector<std::int64_t> numbers;
    for (const Integer& each : integers) numbers.push_back(*each.known);
    value.constant = std::make_shared<const Tensor>(make_tensor(*value.dims, numbers));
  }
  value.integers = std::move(integers);
  return value;
}

}  // namespace decent::onnx
