#include "decent/onnx/format/numbers.h"

#include <bit>

namespace decent::onnx {
namespace {

std::uint64_t count_varints(const Message& message, const Field& field) {
  std::uint64_t count = 0;
  for (std::uint64_t at = field.content.begin; at < field.content.end; ++count) {
    std::uint64_t value = 0;
    const std::uint64_t begin = at;
    if (!read_varint(message.input().bytes, at, field.content.end, value)) {
      message.fail_at(begin, "a number does not end, or has over 64 bits");
    }
  }
  return count;
}

}  // namespace

std::uint64_t count_numbers(const Message& message, const Field& field, Number number) {
  if (field.type != WireType::bytes) {
    message.require(field, number == Number::varint    ? WireType::varint
                           : number == Number::fixed32 ? WireType::fixed32
                                                       : WireType::fixed64);
    return 1;
  }
  if (number == Number::varint) return count_varints(message, field);
  const std::uint64_t size = number == Number::fixed32 ? 4 : 8;
  if (field.content.size() % size != 0) {
    message.fail_at(field.range.begin, "numbers of " + std::to_string(size) + " bytes in " +
                                           std::to_string(field.content.size()) + " bytes");
  }
  return field.content.size() / size;
}

void append_integers(const Message& message, const Field& field, std::vector<std::int64_t>& to) {
  const std::uint64_t count = count_numbers(message, field, Number::varint);
  message.input().charge(3 * sizeof(std::int64_t) *
                         count);  // a growing vector exists twice for a moment
  for_each_number(message, field, Number::varint,
                  [&](std::uint64_t bits) { to.push_back(static_cast<std::int64_t>(bits)); });
}

void append_reals(const Message& message, const Field& field, std::vector<float>& to) {
  const std::uint64_t count = count_numbers(message, field, Number::fixed32);
  message.input().charge(3 * sizeof(float) * count);
  for_each_number(message, field, Number::fixed32, [&](std::uint64_t bits) {
    to.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  });
}

}  // namespace decent::onnx
