// The wire format: what is read and what is refused, with the byte where it is.

#include "decent/onnx/format/wire.h"

#include "model_files.h"

namespace decent::onnx::file_bytes {
namespace {

using decent::testing::refusal;

struct Read {
  bool whole = false;
  std::uint64_t value = 0;
  std::uint64_t position = 0;
};

Read read(std::string_view text) {
  const std::vector<std::byte> content = to_bytes(text);
  Read result;
  result.whole = read_varint(content, result.position, content.size(), result.value);
  return result;
}

TEST(Varint, IsReadAsItIsWritten) {
  for (const std::uint64_t value :
       {0ULL, 1ULL, 127ULL, 128ULL, 300ULL, 0xFFFFFFFFULL, ~0ULL, 1ULL << 63}) {
    std::string text;
    append_varint(text, value);
    EXPECT_EQ(text, varint(value));
    const Read result = read(text + "more");
    EXPECT_TRUE(result.whole);
    EXPECT_EQ(result.value, value);
    EXPECT_EQ(result.position, text.size());
  }
}

TEST(Varint, MayBeLongerThanItNeeds) {
  const Read result = read(std::string("\x85\x80\x00", 3));
  EXPECT_TRUE(result.whole);
  EXPECT_EQ(result.value, 5U);
  EXPECT_EQ(result.position, 3U);
}

TEST(Varint, OneThatDoesNotEndOrIsTooLargeIsNone) {
  EXPECT_FALSE(read("").whole);
  EXPECT_FALSE(read("\xFF").whole);
  EXPECT_FALSE(read(std::string(9, '\xFF') + "\x02").whole) << "65 bits";
  EXPECT_FALSE(read(std::string(10, '\x80') + std::string(1, '\0')).whole) << "11 bytes";
}

// The fields of a message as "number:type" and the range of each.
std::string fields_of(const std::string& text) {
  const std::vector<std::byte> content = to_bytes(text);
  Input input(content, "m.onnx");
  const Message message(input, {0, content.size()}, "ModelProto");
  std::string all;
  for (Fields fields(message); const Field* field = fields.next();) {
    all += std::to_string(field->number) + ":" + std::to_string(static_cast<int>(field->type)) +
           "[" + std::to_string(field->range.begin) + "," + std::to_string(field->range.end) + ") ";
  }
  return all;
}

std::string refused(const std::string& text) {
  return refusal([&] { fields_of(text); });
}

TEST(Fields, OfEveryType) {
  EXPECT_EQ(fields_of(""), "");
  EXPECT_EQ(
      fields_of(number(1, 300) + bytes(2, "ab") + real(3, 1) + varint(4 << 3 | 1) + raw({1.0})),
      "1:0[0,3) 2:2[3,7) 3:5[7,12) 4:1[12,21) ");
}

TEST(Fields, WhatIsNoFieldIsRefusedWithItsPlace) {
  const std::string begin = "model 'm.onnx': not a whole ONNX file: ";
  EXPECT_EQ(refused(number(1, 1) + "\x80"),
            begin + "here should be a field (byte 2, in a ModelProto)");
  EXPECT_EQ(refused(std::string(1, '\0')),
            begin + "here should be a field (byte 0, in a ModelProto)");
  EXPECT_EQ(refused("\x08\xFF"),
            begin + "a number does not end, or has over 64 bits (byte 0, in a ModelProto)");
  EXPECT_EQ(
      refused("\x12\x03xy"),
      begin + "field 2 is longer than the message that it stands in (byte 0, in a ModelProto)");
  EXPECT_EQ(
      refused(varint(2 << 3 | 2) + varint(~0ULL) + "xy"),
      begin + "field 2 is longer than the message that it stands in (byte 0, in a ModelProto)");
  EXPECT_EQ(refused("\x15zzz"), begin + "a number is cut short (byte 0, in a ModelProto)");
  EXPECT_EQ(refused("\x0B"),
            begin + "field 1 has wire type 3, which ONNX does not use (byte 0, in a ModelProto)");
  EXPECT_EQ(refused(varint(1ULL << 32) + "x"),
            begin + "here should be a field (byte 0, in a ModelProto)");
}

TEST(Fields, MayOccurOnceOrOften) {
  const std::vector<std::byte> content = to_bytes(number(1, 1) + number(1, 2));
  Input input(content, "m.onnx");
  const Message message(input, {0, content.size()}, "NodeProto");
  Fields fields(message);
  fields.next();
  fields.once();
  fields.next();
  EXPECT_EQ(refusal([&] { fields.once(); }),
            "model 'm.onnx': not a whole ONNX file: field 1 occurs twice, and may occur once (byte "
            "2, in a NodeProto)");
}

TEST(Messages, StandAtMostAHundredDeep) {
  const auto depth = [](int levels) {
    std::string text;
    for (int i = 1; i < levels; ++i) text = bytes(1, text);
    const std::vector<std::byte> content = to_bytes(text);
    Input input(content, "m.onnx");
    std::vector<Message> messages = {Message(input, {0, content.size()}, "M")};
    for (int i = 1; i < levels; ++i) {
      Fields fields(messages.back());
      messages.push_back(messages.back().open(*fields.next(), "M"));
    }
  };
  depth(100);
  EXPECT_THAT(refusal([&] { depth(101); }),
              ::testing::HasSubstr("messages stand more than 100 deep inside one another"));
}

TEST(Numbers, PackedOrOneByOne) {
  const auto integers = [](const std::string& text) {
    const std::vector<std::byte> content = to_bytes(text);
    Input input(content, "m.onnx");
    const Message message(input, {0, content.size()}, "TensorProto");
    std::vector<std::int64_t> values;
    for (Fields fields(message); const Field* field = fields.next();) {
      append_integers(message, *field, values);
    }
    return values;
  };
  EXPECT_THAT(integers(number(1, 1) + packed(1, {2, -3}) + packed(1, {}) + number(1, 4)),
              ::testing::ElementsAre(1, 2, -3, 4));
  EXPECT_THAT(refusal([&] { integers(bytes(1, "\x01\xFF")); }),
              ::testing::HasSubstr("a number does not end, or has over 64 bits (byte 3"));
  EXPECT_THAT(refusal([&] { integers(real(1, 1)); }),
              ::testing::HasSubstr("field 1 has wire type 5, not 0"));
}

TEST(Input, LimitsMemoryNodesAndFields) {
  Input input({}, "m.onnx");
  input.charge(kMemoryForAnyFile);
  EXPECT_THAT(
      refusal([&] { input.charge(1); }),
      ::testing::HasSubstr("would need more than 48 MB of memory, the most for a file of 0"));
  input.count_nodes(kMaxNodes);
  EXPECT_THAT(refusal([&] { input.count_nodes(1); }),
              ::testing::HasSubstr("has more than 100000 nodes"));
  for (std::int64_t i = 0; i < kMaxFields; ++i) input.count_field();
  EXPECT_THAT(refusal([&] { input.count_field(); }),
              ::testing::HasSubstr("has more fields than the 20 million that are read"));
}

}  // namespace
}  // namespace decent::onnx::file_bytes
