#include "decent/onnx/format/elements.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "decent/onnx/format/export_advice.h"

namespace decent::onnx {
namespace {

struct TypeRow {
  std::string_view name;
  std::uint64_t size = 0;  // 0: not imported, or of no fixed size
};

// By number.
constexpr std::array<TypeRow, 29> kTypes = {{
    {"undefined"},      {"float32", 4},  {"uint8", 1},     {"int8", 1},        {"uint16", 2},
    {"int16", 2},       {"int32", 4},    {"int64", 8},     {"string"},         {"bool", 1},
    {"float16", 2},     {"float64", 8},  {"uint32", 4},    {"uint64", 8},      {"complex64"},
    {"complex128"},     {"bfloat16", 2}, {"float8e4m3fn"}, {"float8e4m3fnuz"}, {"float8e5m2"},
    {"float8e5m2fnuz"}, {"uint4"},       {"int4"},         {"float4e2m1"},     {"float8e8m0"},
    {"uint2"},          {"int2"},        {"float6e2m3"},   {"float6e3m2"},
}};
// The types after it have 8 bits or fewer: float8, int4 ..
constexpr ElementType kLastWide = ElementType::bfloat16;
static_assert(kTypes[static_cast<std::size_t>(ElementType::bfloat16)].name == "bfloat16");

bool is_known(std::int64_t number) {
  return number >= 0 && number < static_cast<std::int64_t>(kTypes.size());
}

// A file may have any number as a type; numbers that are no type count as undefined.
const TypeRow& row_of(ElementType type) {
  const auto number = static_cast<std::int64_t>(type);
  return kTypes[is_known(number) ? static_cast<std::size_t>(number) : 0];
}

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

std::uint64_t size_of(ElementType type) { return row_of(type).size; }

std::string name_of(ElementType type) { return std::string(row_of(type).name); }

ElementType element_type(std::int64_t number) {
  if (!is_known(number)) return ElementType::undefined;
  const auto type = static_cast<ElementType>(number);
  return type == ElementType::string || size_of(type) > 0 ? type : ElementType::undefined;
}

std::string name_of_number(std::int64_t number) {
  if (!is_known(number)) return "the unknown type " + std::to_string(number);
  return name_of(static_cast<ElementType>(number));
}

std::string refused_type_text(std::int64_t number) {
  const std::string text =
      "type " + name_of_number(number) +
      "; those that are read are float32, float64, float16, bfloat16, int8 to int64, uint8 to "
      "uint64, bool and string";
  const bool is_narrow = is_known(number) && number > static_cast<std::int64_t>(kLastWide);
  return is_narrow
             ? text + ", as such elements are those of a quantised model.\n" + quantised_advice()
             : text;
}

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

double as_written(float value) {
  std::array<char, 32> text{};
  const char* end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  double number = value;
  std::from_chars(text.data(), end, number);
  // The decimal of the largest float is larger than the float itself, which PyTorch refuses.
  return std::abs(number) > std::numeric_limits<float>::max() ? value : number;
}

}  // namespace decent::onnx
