#include "decent/onnx/format/wire.h"

#include <bit>

namespace decent::onnx {
namespace {

constexpr std::uint64_t kHeapStringSize = 15;  // longer strings are allocated
constexpr std::uint64_t kAllocationOverhead = 16;

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

bool read_varint(std::span<const std::byte> bytes, std::uint64_t& position, std::uint64_t end,
                 std::uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64 && position < end; shift += 7) {
    const auto byte = std::to_integer<std::uint64_t>(bytes[position++]);
    if (shift == 63 && byte > 1) return false;
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

Message::Message(Input& input, ByteRange content, const char* type, int depth)
    : input_(&input), content_(content), type_(type), depth_(depth) {
  if (depth > kMaxMessageDepth) {
    fail_at(content.begin, "messages stand more than " + std::to_string(kMaxMessageDepth) +
                               " deep inside one another, the most that are read");
  }
}

Message Message::open(const Field& field, const char* type) const {
  require(field, WireType::bytes);
  return {*input_, field.content, type, depth_ + 1};
}

void Message::fail_at(std::uint64_t position, const std::string& what) const {
  input_->fail("not a whole ONNX file: " + what + " (byte " + std::to_string(position) + ", in a " +
               type_ + ")");
}

void Message::require(const Field& field, WireType type) const {
  if (field.type == type) return;
  fail_at(field.range.begin, "field " + std::to_string(field.number) + " has wire type " +
                                 std::to_string(static_cast<int>(field.type)) + ", not " +
                                 std::to_string(static_cast<int>(type)));
}

std::string Message::text(const Field& field) const {
  const std::span<const std::byte> content = bytes(field);
  if (content.size() > kHeapStringSize) input_->charge(content.size() + kAllocationOverhead);
  return {reinterpret_cast<const char*>(content.data()), content.size()};
}

std::int64_t Message::integer(const Field& field) const {
  require(field, WireType::varint);
  return static_cast<std::int64_t>(field.value);
}

float Message::real(const Field& field) const {
  require(field, WireType::fixed32);
  return std::bit_cast<float>(static_cast<std::uint32_t>(field.value));
}

std::span<const std::byte> Message::bytes(const Field& field) const {
  require(field, WireType::bytes);
  return input_->bytes.subspan(field.content.begin, field.content.size());
}

const Field* Fields::next() {
  const std::uint64_t end = message_->content().end;
  if (position_ == end) return nullptr;
  message_->input().count_field();
  field_ = {};
  field_.range.begin = position_;
  std::uint64_t tag = 0;
  if (!read_varint(message_->input().bytes, position_, end, tag) || tag >> 32 != 0 || tag < 8) {
    message_->fail_at(field_.range.begin, "here should be a field");
  }
  field_.number = static_cast<std::uint32_t>(tag >> 3);
  field_.type = static_cast<WireType>(tag & 7);
  switch (field_.type) {
    case WireType::varint:
      if (!read_varint(message_->input().bytes, position_, end, field_.value)) {
        message_->fail_at(field_.range.begin, "a number does not end, or has over 64 bits");
      }
      break;
    case WireType::bytes:
      read_length();
      break;
    case WireType::fixed32:
      read_fixed(4);
      break;
    case WireType::fixed64:
      read_fixed(8);
      break;
    default:
      message_->fail_at(field_.range.begin, "field " + std::to_string(field_.number) +
                                                " has wire type " + std::to_string(tag & 7) +
                                                ", which ONNX does not use");
  }
  field_.range.end = position_;
  return &field_;
}

void Fields::read_length() {
  const std::uint64_t end = message_->content().end;
  std::uint64_t length = 0;
  if (!read_varint(message_->input().bytes, position_, end, length) || length > end - position_) {
    message_->fail_at(field_.range.begin, "field " + std::to_string(field_.number) +
                                              " is longer than the message that it stands in");
  }
  field_.content = {position_, position_ + length};
  position_ += length;
}

void Fields::read_fixed(std::uint64_t size) {
  if (message_->content().end - position_ < size) {
    message_->fail_at(field_.range.begin, "a number is cut short");
  }
  for (std::uint64_t i = 0; i < size; ++i) {
    field_.value |= std::to_integer<std::uint64_t>(message_->input().bytes[position_ + i])
                    << (8 * i);
  }
  position_ += size;
}

void Fields::once() {
  const std::uint64_t bit = std::uint64_t{1} << field_.number;
  if ((seen_ & bit) != 0) {
    message_->fail_at(field_.range.begin, "field " + std::to_string(field_.number) +
                                              " occurs twice, and may occur once");
  }
  seen_ |= bit;
}

FieldCounts count_fields(const Message& message) {
  FieldCounts counts{};
  Fields fields(message);
  while (const Field* field = fields.next()) {
    if (field->number < kFieldNumbers) ++counts[field->number];
  }
  return counts;
}

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

void append_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}

void append_tag(std::string& to, std::uint32_t field, WireType type) {
  append_varint(to, field << 3 | static_cast<std::uint32_t>(type));
}

void append_number(std::string& to, std::uint32_t field, std::uint64_t value) {
  append_tag(to, field, WireType::varint);
  append_varint(to, value);
}

void append_bytes(std::string& to, std::uint32_t field, std::string_view content) {
  append_tag(to, field, WireType::bytes);
  append_varint(to, content.size());
  to += content;
}

}  // namespace decent::onnx
