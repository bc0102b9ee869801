#include "decent/onnx/format/elements.h"

#include <bit>
#include <cstring>

namespace decent::onnx {
namespace {

template <typename T>
T element(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

float from_bfloat16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// IEEE 754 binary16. A subnormal is its fraction times 2^-24.
float from_float16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1Fu;
  const std::uint32_t fraction = bits & 0x3FFu;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

// Calls `visit(index, value)` with each element in its own type, half types as float.
template <typename Visit>
void visit_elements(const Tensor& tensor, const Visit& visit) {
  const std::span<const std::byte> bytes = tensor.elements();
  const std::size_t width = size_of(tensor.type);
  const std::size_t count = width == 0 ? 0 : bytes.size() / width;
  const auto all = [&]<typename T>(T) {
    for (std::size_t i = 0; i < count; ++i) visit(i, element<T>(bytes, i));
  };
  switch (tensor.type) {
    case ElementType::float32:
      return all(float{});
    case ElementType::float64:
      return all(double{});
    case ElementType::boolean:
    case ElementType::uint8:
      return all(std::uint8_t{});
    case ElementType::int8:
      return all(std::int8_t{});
    case ElementType::uint16:
      return all(std::uint16_t{});
    case ElementType::int16:
      return all(std::int16_t{});
    case ElementType::uint32:
      return all(std::uint32_t{});
    case ElementType::int32:
      return all(std::int32_t{});
    case ElementType::uint64:
      return all(std::uint64_t{});
    case ElementType::int64:
      return all(std::int64_t{});
    case ElementType::float16:
      for (std::size_t i = 0; i < count; ++i)
        visit(i, from_float16(element<std::uint16_t>(bytes, i)));
      return;
    case ElementType::bfloat16:
      for (std::size_t i = 0; i < count; ++i)
        visit(i, from_bfloat16(element<std::uint16_t>(bytes, i)));
      return;
    case ElementType::string:
    case ElementType::undefined:
      return;
  }
}

}  // namespace

std::optional<std::string> torch_dtype(ElementType type) {
  if (type == ElementType::string || type == ElementType::undefined) return std::nullopt;
  return "torch." + std::string(name_of(type));
}

Tensor widened(const Tensor& tensor) {
  auto bytes = std::make_shared<std::vector<std::byte>>(tensor.elements().size() * 2);
  visit_elements(tensor, [&](std::size_t i, auto value) {
    const auto wide = static_cast<float>(value);
    std::memcpy(bytes->data() + i * sizeof(float), &wide, sizeof(float));
  });
  Tensor result;
  result.name = tensor.name;
  result.type = ElementType::float32;
  result.dims = tensor.dims;
  result.encoding = Encoding::typed;
  result.decoded = std::move(bytes);
  return result;
}

std::vector<double> as_doubles(const Tensor& tensor) {
  std::vector<double> values;
  visit_elements(tensor,
                 [&](std::size_t, auto value) { values.push_back(static_cast<double>(value)); });
  return values;
}

std::vector<std::int64_t> as_integers(const Tensor& tensor) {
  std::vector<std::int64_t> values;
  visit_elements(
      tensor, [&](std::size_t, auto value) { values.push_back(static_cast<std::int64_t>(value)); });
  return values;
}

Tensor make_tensor(std::vector<std::int64_t> dims, std::span<const std::int64_t> values) {
  auto bytes = std::make_shared<std::vector<std::byte>>(values.size_bytes());
  if (!values.empty()) std::memcpy(bytes->data(), values.data(), values.size_bytes());
  Tensor result;
  result.type = ElementType::int64;
  result.dims = std::move(dims);
  result.encoding = Encoding::typed;
  result.decoded = std::move(bytes);
  return result;
}

}  // namespace decent::onnx
