#pragma once
// Protocol Buffers' wire format: read field by field, with limits, and written.
//
// The reader is our own and not protobuf's generated code, for four reasons. Files are of unknown
// origin: every count and size is checked against the bytes of the file before memory is allocated,
// while protobuf first builds everything. Weights stay in the mapped file, while protobuf copies
// them. The writer needs to know the place of each field (write.h). And the format is small: five
// kinds of fields, two of them obsolete.
//
// The reader is stricter than protobuf, which accepts whatever it can: a field that may occur once
// must not occur twice, must have the kind that onnx.proto gives it, and must not reach past its
// message. Unknown fields are skipped.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/onnx/format/input.h"
#include "decent/onnx/format/ir.h"

namespace decent::onnx {

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

enum class WireType : std::uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

struct Field {
  std::uint32_t number = 0;
  WireType type = WireType::varint;
  std::uint64_t value = 0;  // varint, fixed64, fixed32
  ByteRange range;          // tag included
  ByteRange content;        // of bytes: after the length
};

/// The largest model file, because in every other program offsets in protobuf messages have 31
/// bits.
inline constexpr std::uint64_t kMaxFileBytes = 0x7FFFFFFF;

/// The greatest depth of nested messages, which is protobuf's own limit. A graph inside a graph
/// takes three levels.
inline constexpr int kMaxMessageDepth = 100;

/// Reads a varint that starts at `position` and ends before `end`, and moves `position` past it.
/// False if it does not end before `end` or has more than 64 bits.
bool read_varint(std::span<const std::byte> bytes, std::uint64_t& position, std::uint64_t end,
                 std::uint64_t& value);

/// A message in the file: its name in onnx.proto, the range of its fields, and its depth.
class Message {
 public:
  Message(Input& input, ByteRange content, const char* type, int depth = 1);
  /// Opens the message in a field of this one. Throws UserError if the field is no message or is
  /// too deep.
  Message open(const Field& field, const char* type) const;

  Input& input() const { return *input_; }
  ByteRange content() const { return content_; }
  const char* type() const { return type_; }

  /// Throws UserError naming the message and `position` in the file.
  [[noreturn]] void fail_at(std::uint64_t position, const std::string& what) const;
  /// Throws UserError if the field has another type than in onnx.proto.
  void require(const Field& field, WireType type) const;

  std::string text(const Field& field) const;
  std::int64_t integer(const Field& field) const;
  float real(const Field& field) const;
  std::span<const std::byte> bytes(const Field& field) const;

 private:
  Input* input_;
  ByteRange content_;
  const char* type_;
  int depth_;
};

/// The fields of a message, in the order of the file.
class Fields {
 public:
  explicit Fields(const Message& message)
      : message_(&message), position_(message.content().begin) {}

  /// The next field, or nullptr at the end. Throws UserError if the bytes are no field.
  const Field* next();
  /// Throws UserError if this field, which may occur only once, occurred before.
  void once();

 private:
  void read_length();
  void read_fixed(std::uint64_t size);

  const Message* message_;
  std::uint64_t position_;
  std::uint64_t seen_ = 0;  // one bit per field number, for fields that may occur once
  Field field_;
};

/// Field numbers of onnx.proto are below this.
inline constexpr std::uint32_t kFieldNumbers = 32;
/// How often each field occurs in the message.
using FieldCounts = std::array<std::uint64_t, kFieldNumbers>;
FieldCounts count_fields(const Message& message);

// Repeated numbers: packed into one field, or one field each.

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

// Writing.

void append_varint(std::string& to, std::uint64_t value);

void append_tag(std::string& to, std::uint32_t field, WireType type);

/// Appends a field with a number.
void append_number(std::string& to, std::uint32_t field, std::uint64_t value);

/// Appends a field with text or a message.
void append_bytes(std::string& to, std::uint32_t field, std::string_view content);

}  // namespace decent::onnx
