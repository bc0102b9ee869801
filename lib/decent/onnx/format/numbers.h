#pragma once
// Repeated numbers: packed into one field, or one field each.

#include <cstdint>
#include <span>
#include <vector>

#include "decent/onnx/format/wire.h"

namespace decent::onnx {

/// How the elements of a repeated number are written.
enum class Number { varint, fixed32, fixed64 };

/// How many numbers a field holds. Throws UserError if its size does not fit a whole number of
/// them.
std::uint64_t count_numbers(const Message& message, const Field& field, Number number);

/// Calls `take(bits)` with each number of a field whose numbers were counted.
template <typename Take>
void for_each_number(const Message& message, const Field& field, Number number, const Take& take) {
  if (field.type != WireType::bytes) {
    take(field.value);
    return;
  }
  const std::span<const std::byte> bytes = message.input().bytes;
  for (std::uint64_t at = field.content.begin; at < field.content.end;) {
    std::uint64_t bits = 0;
    if (number == Number::varint) {
      read_varint(bytes, at, field.content.end, bits);  // counting has checked it
    } else {
      const int size = number == Number::fixed32 ? 4 : 8;
      for (int i = 0; i < size; ++i) bits |= std::to_integer<std::uint64_t>(bytes[at++]) << (8 * i);
    }
    take(bits);
  }
}

/// Appends the numbers of a field. Throws UserError.
void append_integers(const Message& message, const Field& field, std::vector<std::int64_t>& to);
void append_reals(const Message& message, const Field& field, std::vector<float>& to);

}  // namespace decent::onnx
