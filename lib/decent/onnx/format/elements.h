#pragma once
// The elements of ONNX's tensors: their types, and their values in PyTorch's types.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "decent/onnx/format/ir.h"

namespace decent::onnx {

/// Bytes of an element; 0 for string and undefined.
std::uint64_t size_of(ElementType type);

/// "float32", "int64", ..
std::string name_of(ElementType type);

/// The type for a number in a file; undefined for 0 and for types that are not imported.
ElementType element_type(std::int64_t number);

/// The name of any number: "float8e4m3fn", "the unknown type 99".
std::string name_of_number(std::int64_t number);

/// "type complex64; those that are read are float32, ..", for a number that element_type() does not
/// take, with advice for the types of quantised models.
std::string refused_type_text(std::int64_t number);

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

/// The shortest decimal of a float32, as a double. A file holds a number that was written as 1e-05
/// as float32, while PyTorch's own models have it as the double 1e-05, not 9.999999747378752e-06.
double as_written(float value);

}  // namespace decent::onnx
