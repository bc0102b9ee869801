#pragma once
// The elements of ONNX's tensors in PyTorch's types.

#include <optional>
#include <string>

#include "decent/onnx/format/element_types.h"
#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// "torch.float32"; for a string tensor, which PyTorch does not have, std::nullopt.
std::optional<std::string> torch_dtype(ElementType type);

constexpr bool is_floating(ElementType type) {
  return type == ElementType::float16 || type == ElementType::bfloat16 ||
         type == ElementType::float32 || type == ElementType::float64;
}

constexpr bool is_half(ElementType type) {
  return type == ElementType::float16 || type == ElementType::bfloat16;
}

constexpr bool is_integer(ElementType type) {
  return type == ElementType::uint8 || type == ElementType::int8 || type == ElementType::uint16 ||
         type == ElementType::int16 || type == ElementType::int32 || type == ElementType::int64 ||
         type == ElementType::uint32 || type == ElementType::uint64;
}

/// The tensor with its float16 or bfloat16 elements converted to float32, which is exact.
Tensor widened(const Tensor& tensor);

/// All elements as doubles: floating-point, integer and boolean types.
std::vector<double> as_doubles(const Tensor& tensor);

/// All elements of an integer or boolean tensor.
std::vector<std::int64_t> as_integers(const Tensor& tensor);

/// An int64 tensor; `dims` is empty for a scalar.
Tensor make_tensor(std::vector<std::int64_t> dims, std::span<const std::int64_t> values);

}  // namespace decent::onnx
