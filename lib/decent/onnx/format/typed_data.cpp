#include "decent/onnx/format/typed_data.h"

#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "decent/onnx/format/elements.h"

namespace decent::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are little-endian");

constexpr std::array<TypedField, 6> kFields = {{
    {4, "float_data", Number::fixed32},
    {5, "int32_data", Number::varint},
    {6, "string_data", Number::varint},
    {7, "int64_data", Number::varint},
    {10, "double_data", Number::fixed64},
    {11, "uint64_data", Number::varint},
}};

// The valid varints, as signed numbers, for elements of a type narrower than 64 bits.
struct Range {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

template <typename T>
constexpr Range range_of() {
  return {std::numeric_limits<T>::min(), std::numeric_limits<T>::max()};
}

Range range_of_type(ElementType type) {
  switch (type) {
    case ElementType::uint8:
      return range_of<std::uint8_t>();
    case ElementType::int8:
      return range_of<std::int8_t>();
    case ElementType::uint16:
    case ElementType::float16:  // the bits of the element
    case ElementType::bfloat16:
      return range_of<std::uint16_t>();
    case ElementType::int16:
      return range_of<std::int16_t>();
    case ElementType::int32:
      return range_of<std::int32_t>();
    case ElementType::uint32:
      return range_of<std::uint32_t>();
    case ElementType::boolean:
      return {0, 1};
    default:
      return range_of<std::int64_t>();  // all bits count
  }
}

// An element as protobuf writes int32, int64 and uint64: negative numbers in 64 bits.
std::uint64_t number_of(const std::byte* element, ElementType type) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, element, size_of(type));
  switch (type) {
    case ElementType::int8:
      return static_cast<std::uint64_t>(static_cast<std::int8_t>(bits));
    case ElementType::int16:
      return static_cast<std::uint64_t>(static_cast<std::int16_t>(bits));
    case ElementType::int32:
      return static_cast<std::uint64_t>(static_cast<std::int32_t>(bits));
    default:
      return bits;
  }
}

void append_number(std::string& to, const std::byte* element, ElementType type, Number kind) {
  if (kind == Number::varint) {
    append_varint(to, number_of(element, type));
  } else {
    to.append(reinterpret_cast<const char*>(element), size_of(type));
  }
}

}  // namespace

TypedField typed_field_of(ElementType type) {
  switch (type) {
    case ElementType::undefined:
      return {};
    case ElementType::float32:
      return kFields[0];
    case ElementType::string:
      return kFields[2];
    case ElementType::int64:
      return kFields[3];
    case ElementType::float64:
      return kFields[4];
    case ElementType::uint32:
    case ElementType::uint64:
      return kFields[5];
    default:
      return kFields[1];
  }
}

std::string_view name_of_data_field(std::uint32_t number) {
  for (const TypedField& field : kFields) {
    if (field.number == number) return field.name;
  }
  return "";
}

std::shared_ptr<const std::vector<std::byte>> decode_typed(const Message& message, ElementType type,
                                                           std::uint64_t count,
                                                           const std::string& tensor) {
  const TypedField typed = typed_field_of(type);
  const std::uint64_t size = size_of(type);
  const Range range = range_of_type(type);
  message.input().charge(count * size);
  auto elements = std::make_shared<std::vector<std::byte>>(count * size);
  std::byte* to = elements->data();
  const auto take = [&](std::uint64_t bits) {
    if (typed.kind == Number::varint) {
      auto value = static_cast<std::int64_t>(bits);
      // Some writers write a negative int32 in 32 bits, not in 64 as protobuf does.
      if (type == ElementType::int32 && bits >> 32 == 0) value = static_cast<std::int32_t>(bits);
      if (value < range.least || value > range.most) {
        message.input().fail(tensor + ": " + std::to_string(value) + " in " +
                             std::string(typed.name) + " is not a " + std::string(name_of(type)) +
                             " (" + std::to_string(range.least) + " to " +
                             std::to_string(range.most) + ")");
      }
    }
    std::memcpy(to, &bits, size);  // little-endian: the low bytes
    to += size;
  };
  for (Fields fields(message); const Field* field = fields.next();) {
    if (field->number == typed.number) for_each_number(message, *field, typed.kind, take);
  }
  return elements;
}

std::vector<std::string> encode_typed(Input& file, const Tensor& tensor,
                                      std::span<const std::byte> elements) {
  const TypedField typed = typed_field_of(tensor.type);
  const std::uint64_t size = size_of(tensor.type);
  const std::byte* from = elements.data();
  std::vector<std::string> encoded;
  encoded.reserve(tensor.fields.size());
  for (const ByteRange& range : tensor.fields) {
    const Message piece(file, range, "TensorProto");
    Fields fields(piece);
    const Field& field = *fields.next();
    const std::uint64_t count = count_numbers(piece, field, typed.kind);
    std::string numbers;
    for (std::uint64_t i = 0; i < count; ++i, from += size) {
      append_number(numbers, from, tensor.type, typed.kind);
    }
    std::string& to = encoded.emplace_back();
    append_tag(to, field.number, field.type);
    if (field.type == WireType::bytes) append_varint(to, numbers.size());
    to += numbers;
  }
  return encoded;
}

}  // namespace decent::onnx
