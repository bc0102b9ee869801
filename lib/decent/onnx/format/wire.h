#pragma once
// Protocol Buffers' wire format, read field by field, with limits.
//
// The reader is our own and not protobuf's generated code, for four reasons. A file from anywhere
// is read: every count and size is checked against the bytes that are there before memory is spent,
// where protobuf first builds all of it. Weights stay in the mapped file, where protobuf copies
// them. The writer needs to know where each field lies (write.h). And the format is small: five
// kinds of fields, two of them gone.
//
// Stricter than protobuf, which takes what it can: a field that may occur once occurs once, has the
// kind that onnx.proto gives it, and ends where its message ends. Unknown fields are passed over.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

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

/// Of a model file: offsets in protobuf messages have 31 bits in every other program.
inline constexpr std::uint64_t kMaxFileBytes = 0x7FFFFFFF;

/// Messages inside one another, at most: protobuf's own limit. A graph inside a graph takes three.
inline constexpr int kMaxDepth = 100;

/// A varint that starts at `position` and ends before `end`; moves `position` behind it. False
/// where it does not end in time or has more than 64 bits.
bool read_varint(std::span<const std::byte> bytes, std::uint64_t& position, std::uint64_t end,
                 std::uint64_t& value);

/// A message in the file: its name in onnx.proto, where its fields lie, how deep it stands.
class Message {
 public:
  Message(Input& input, ByteRange content, const char* type, int depth = 1);
  /// The message in a field of this one. Throws UserError where it is not one or is too deep.
  Message open(const Field& field, const char* type) const;

  Input& input() const { return *input_; }
  ByteRange content() const { return content_; }
  const char* type() const { return type_; }

  /// Throws UserError naming the message and `position` in the file.
  [[noreturn]] void fail_at(std::uint64_t position, const std::string& what) const;
  /// Throws UserError where the field has another type than onnx.proto gives it.
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

  /// The next field, or nullptr at the end. Throws UserError where the bytes are not one.
  const Field* next();
  /// Throws UserError where this field, which may occur once, occurred before.
  void once();

 private:
  void read_length();
  void read_fixed(std::uint64_t size);

  const Message* message_;
  std::uint64_t position_;
  std::uint64_t seen_ = 0;  // a bit a field number, of those that may occur once
  Field field_;
};

/// Field numbers of onnx.proto are below this.
inline constexpr std::uint32_t kFieldNumbers = 32;
/// How often each field occurs in the message.
using FieldCounts = std::array<std::uint64_t, kFieldNumbers>;
FieldCounts count_fields(const Message& message);

}  // namespace decent::onnx
