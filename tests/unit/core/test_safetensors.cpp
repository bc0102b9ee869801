#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "../support/safetensors_bytes.h"
#include "decent/core/error.h"
#include "decent/core/safetensors.h"

namespace decent {
namespace {

using testing::as_bytes;
using testing::safetensors_bytes;

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::string> names_of(const Safetensors& file) {
  std::vector<std::string> names;
  for (const TensorView& tensor : file.tensors) names.push_back(tensor.name);
  return names;
}

TEST(ParseSafetensors, ReadsAFileWrittenByHand) {
  // The example of the format's README in shape: 8 bytes of length, the header, little-endian data.
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]},)"
      R"("b":{"dtype":"I64","shape":[1],"data_offsets":[8,16]}}  )";
  ASSERT_LT(header.size(), 256U);
  const std::string data("\x00\x00\x80\x3F\x00\x00\x00\xC0\x05\x00\x00\x00\x00\x00\x00\x00",
                         16);  // 1, -2; 5
  const std::string bytes = static_cast<char>(header.size()) + std::string(7, '\0') + header + data;

  const Safetensors file = parse_safetensors(as_bytes(bytes), "x.safetensors");
  EXPECT_EQ(names_of(file), (std::vector<std::string>{"b", "w"}));
  EXPECT_EQ(file.metadata, (std::map<std::string, std::string>{{"format", "pt"}}));
  const TensorView* w = file.find("w");
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->dtype, DType::float32);
  EXPECT_EQ(w->shape, (std::vector<std::int64_t>{2, 1}));
  float values[2];
  ASSERT_EQ(w->data.size(), sizeof values);
  std::memcpy(values, w->data.data(), sizeof values);
  EXPECT_EQ(values[0], 1.0F);
  EXPECT_EQ(values[1], -2.0F);
  EXPECT_EQ(text_of(file.find("b")->data), data.substr(8));
  EXPECT_EQ(file.find("a"), nullptr);
  EXPECT_EQ(file.find("z"), nullptr);
}

TEST(ParseSafetensors, ReadsFilesWithoutTensors) {
  EXPECT_TRUE(parse_safetensors(as_bytes(safetensors_bytes("{}")), "x").tensors.empty());
  EXPECT_EQ(parse_safetensors(as_bytes(safetensors_bytes(R"({"__metadata__":{}})")), "x").find("w"),
            nullptr);
}

TEST(ParseSafetensors, ReadsScalarsAndEmptyTensorsAnywhere) {
  const std::string bytes =
      safetensors_bytes(R"({"first":{"dtype":"F64","shape":[0],"data_offsets":[0,0]},)"
                        R"("scalar":{"dtype":"U8","shape":[],"data_offsets":[0,1]},)"
                        R"("middle":{"dtype":"F32","shape":[3,0,2],"data_offsets":[1,1]},)"
                        R"("last":{"dtype":"BOOL","shape":[1],"data_offsets":[1,2]},)"
                        R"("end":{"dtype":"I8","shape":[0],"data_offsets":[2,2]}})",
                        "ab");
  const Safetensors file = parse_safetensors(as_bytes(bytes), "x");
  EXPECT_EQ(file.tensors.size(), 5U);
  EXPECT_EQ(text_of(file.find("scalar")->data), "a");
  EXPECT_EQ(text_of(file.find("last")->data), "b");
  EXPECT_TRUE(file.find("scalar")->shape.empty());
  EXPECT_TRUE(file.find("middle")->data.empty());
}

TEST(ParseSafetensors, KnowsEveryDType) {
  const std::vector<std::pair<std::string, DType>> dtypes = {
      {"BOOL", DType::boolean}, {"U8", DType::uint8},      {"I8", DType::int8},
      {"I16", DType::int16},    {"I32", DType::int32},     {"I64", DType::int64},
      {"F16", DType::float16},  {"BF16", DType::bfloat16}, {"F32", DType::float32},
      {"F64", DType::float64},
  };
  for (const auto& [name, dtype] : dtypes) {
    const std::size_t bytes = 3 * size_of(dtype);
    const std::string file =
        safetensors_bytes(R"({"t":{"dtype":")" + name + R"(","shape":[3],"data_offsets":[0,)" +
                              std::to_string(bytes) + "]}}",
                          std::string(bytes, 'x'));
    EXPECT_EQ(parse_safetensors(as_bytes(file), "x").find("t")->dtype, dtype) << name;
  }
}

TEST(SafetensorsHeader, IsByteForByteWhatTheFormatAsks) {
  const std::string data(12, '\0');
  const std::vector<TensorView> tensors = {
      {"w", DType::float32, {2, 1}, as_bytes(data).first(8)},
      {"flags", DType::boolean, {4}, as_bytes(data).last(4)},
  };
  const std::string json =
      R"({"__metadata__":{"step":"5"},"w":{"dtype":"F32","shape":[2, 1],"data_offsets":[0,8]},)"
      R"("flags":{"dtype":"BOOL","shape":[4],"data_offsets":[8,12]}})";
  const std::string header = safetensors_header(tensors, {{"step", "5"}});
  EXPECT_EQ(header.size() % 64, 0U);
  EXPECT_EQ(header.substr(0, 8), testing::length_bytes(header.size() - 8));
  EXPECT_EQ(header.substr(8), json + std::string(header.size() - 8 - json.size(), ' '));
  EXPECT_LT(header.size() - 8 - json.size(), 64U);
}

TEST(SafetensorsHeader, RoundTrips) {
  const std::string data = "0123456789abcdefghij";
  const std::vector<TensorView> tensors = {
      {"weight \"q\" \\ \n \xC3\xA4", DType::int16, {2, 2}, as_bytes(data).first(8)},
      {"scalar", DType::float32, {}, as_bytes(data).subspan(8, 4)},
      {"empty", DType::float64, {0, 7}, {}},
      {"half", DType::bfloat16, {4}, as_bytes(data).subspan(12, 8)},
  };
  const std::map<std::string, std::string> metadata = {{"recipe", "a: 1\nb: \"2\"\n"}, {"", ""}};
  const std::string bytes = safetensors_header(tensors, metadata) + data;
  const Safetensors file = parse_safetensors(as_bytes(bytes), "x");
  EXPECT_EQ(file.metadata, metadata);
  ASSERT_EQ(file.tensors.size(), tensors.size());
  for (const TensorView& tensor : tensors) {
    const TensorView* read = file.find(tensor.name);
    ASSERT_NE(read, nullptr) << tensor.name;
    EXPECT_EQ(read->dtype, tensor.dtype);
    EXPECT_EQ(read->shape, tensor.shape);
    EXPECT_EQ(text_of(read->data), text_of(tensor.data));
  }
}

TEST(SafetensorsHeader, OfNothingIsAFile) {
  const std::string bytes = safetensors_header({});
  EXPECT_EQ(bytes.size(), 64U);
  EXPECT_TRUE(parse_safetensors(as_bytes(bytes), "x").tensors.empty());
}

// Flips, cuts and repeats bytes of a valid file: whatever comes, the parser gives views inside it
// or a UserError.
TEST(ParseSafetensors, SurvivesRandomMutations) {
  const std::string data(24, 'd');
  const std::vector<TensorView> tensors = {
      {"a", DType::float32, {2, 2}, as_bytes(data).first(16)},
      {"b", DType::int64, {}, as_bytes(data).last(8)},
  };
  const std::string valid = safetensors_header(tensors, {{"k", "v"}}) + data;
  const std::string alphabet = "{}[]\",:0123456789-.eE \\uF\x80\xFF";
  std::mt19937_64 random(20240607);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  int parsed = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string bytes = valid;
    for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
      const std::size_t at = below(bytes.size());
      switch (below(5)) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes[at] = alphabet[below(alphabet.size())];
          break;
        case 2:
          bytes.insert(at, 1, alphabet[below(alphabet.size())]);
          break;
        case 3:
          bytes.erase(at, 1 + below(3));
          break;
        default:
          bytes.insert(at, bytes.substr(below(bytes.size()), below(40)));
      }
      if (bytes.empty()) bytes = valid;
    }
    // A buffer of exactly this size on the heap, so that a sanitizer sees a read beyond it.
    const std::vector<char> exact(bytes.begin(), bytes.end());
    try {
      const Safetensors file = parse_safetensors(std::as_bytes(std::span(exact)), "x");
      for (const TensorView& tensor : file.tensors) {
        ASSERT_GE(tensor.data.data(), std::as_bytes(std::span(exact)).data());
        ASSERT_LE(tensor.data.data() + tensor.data.size(),
                  std::as_bytes(std::span(exact)).data() + exact.size());
      }
      ++parsed;
    } catch (const UserError&) {
    }
  }
  EXPECT_GT(parsed, 0);  // some mutations are harmless: else nothing behind the JSON was reached
}

}  // namespace
}  // namespace decent
