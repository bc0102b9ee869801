// Every element type in every encoding, and what is refused of each.

#include "decent/onnx/format/elements.h"
#include "model_files.h"

namespace decent::onnx::file_bytes {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tensor tensor_of(const std::string& text) {
  // The raw elements of a tensor stay where the bytes are.
  static std::vector<std::vector<std::byte>> kept;
  kept.push_back(to_bytes(text));
  return read_tensor(kept.back(), "t.pb");
}

std::string refusal_of(const std::string& text) {
  return decent::testing::refusal([&] { tensor_of(text); });
}

struct Type {
  ElementType type;
  std::string raw;         // two elements
  std::string field;       // the same in the typed field
  std::string one_by_one;  // the same again, not packed
};

void PrintTo(const Type& type, std::ostream* out) { *out << name_of(type.type); }

std::string numbers(int field, std::int64_t a, std::int64_t b) {
  return number(field, a) + number(field, b);
}

Type integers(ElementType type, std::string raw, int field, std::int64_t a, std::int64_t b) {
  return {type, std::move(raw), packed(field, {a, b}), numbers(field, a, b)};
}

const Type kTypes[] = {
    {ElementType::float32, raw({1.5F, -2.F}), bytes(4, raw({1.5F, -2.F})),
     real(4, 1.5) + real(4, -2)},
    {ElementType::float64, raw({1.5, -2.}), bytes(10, raw({1.5, -2.})),
     varint(10 << 3 | 1) + raw({1.5}) + varint(10 << 3 | 1) + raw({-2.})},
    integers(ElementType::int32, raw<std::int32_t>({7, -8}), 5, 7, -8),
    integers(ElementType::int16, raw<std::int16_t>({7, -8}), 5, 7, -8),
    integers(ElementType::int8, raw<std::int8_t>({127, -128}), 5, 127, -128),
    integers(ElementType::uint16, raw<std::uint16_t>({7, 65535}), 5, 7, 65535),
    integers(ElementType::uint8, raw<std::uint8_t>({7, 255}), 5, 7, 255),
    integers(ElementType::boolean, raw<std::uint8_t>({1, 0}), 5, 1, 0),
    integers(ElementType::float16, raw<std::uint16_t>({0x3C00, 0xC000}), 5, 0x3C00, 0xC000),
    integers(ElementType::bfloat16, raw<std::uint16_t>({0x3F80, 0xC000}), 5, 0x3F80, 0xC000),
    integers(ElementType::int64, raw<std::int64_t>({1LL << 40, -8}), 7, 1LL << 40, -8),
    integers(ElementType::uint32, raw<std::uint32_t>({7, 0xFFFFFFFF}), 11, 7, 0xFFFFFFFF),
    integers(ElementType::uint64, raw<std::uint64_t>({7, ~0ULL}), 11, 7, -1),
};

class Encodings : public ::testing::TestWithParam<Type> {
 protected:
  std::string with(const std::string& data) const {
    return tensor("t", static_cast<int>(GetParam().type), {2, 1}, data);
  }
};

TEST_P(Encodings, GiveTheSameElements) {
  const Tensor raw = tensor_of(with(bytes(9, GetParam().raw)));
  EXPECT_EQ(raw.name, "t");
  EXPECT_EQ(raw.type, GetParam().type);
  EXPECT_THAT(raw.dims, ElementsAre(2, 1));
  EXPECT_EQ(raw.count(), 2);
  EXPECT_EQ(raw.encoding, Encoding::raw);
  EXPECT_EQ(as<char>(raw.elements()), as<char>(to_bytes(GetParam().raw)));
  for (const std::string& field : {GetParam().field, GetParam().one_by_one}) {
    const Tensor typed = tensor_of(with(field));
    EXPECT_EQ(typed.encoding, Encoding::typed);
    EXPECT_EQ(as<char>(typed.elements()), as<char>(raw.elements()));
  }
  EXPECT_EQ(tensor_of(with(GetParam().one_by_one)).fields.size(), 2U);
}

TEST_P(Encodings, HaveAsManyElementsAsTheDimsSay) {
  const std::string name(name_of(GetParam().type));
  EXPECT_THAT(
      refusal_of(with(bytes(9, GetParam().raw + "x"))),
      HasSubstr("tensor 't': raw_data has " + std::to_string(GetParam().raw.size() + 1) +
                " bytes, " + name + " [2, 1] takes " + std::to_string(GetParam().raw.size())));
  EXPECT_THAT(refusal_of(with(GetParam().field + GetParam().one_by_one)),
              HasSubstr("tensor 't': has 4 elements, " + name + " [2, 1] takes 2"));
  EXPECT_THAT(refusal_of(with("")), HasSubstr("has 0 elements, " + name + " [2, 1] takes 2"));
}

INSTANTIATE_TEST_SUITE_P(Types, Encodings, ::testing::ValuesIn(kTypes),
                         [](const auto& type) { return std::string(name_of(type.param.type)); });

TEST(Tensors, WithoutDimsAreScalarsAndWithAZeroEmpty) {
  EXPECT_EQ(tensor_of(tensor("s", 1, {}, bytes(9, raw({1.F})))).count(), 1);
  const Tensor empty = tensor_of(tensor("e", 1, {0, 1LL << 40, 3}));
  EXPECT_EQ(empty.count(), 0);
  EXPECT_TRUE(empty.elements().empty());
  EXPECT_EQ(tensor_of(tensor("e", 1, {0}, bytes(9, "") + bytes(4, ""))).count(), 0);
}

TEST(Tensors, OfStringsHaveDimsButNoElements) {
  const Tensor strings = tensor_of(tensor("s", 8, {2}, bytes(6, "a") + bytes(6, "")));
  EXPECT_EQ(strings.type, ElementType::string);
  EXPECT_THAT(strings.dims, ElementsAre(2));
  EXPECT_TRUE(strings.elements().empty());
  EXPECT_THAT(refusal_of(tensor("s", 8, {3}, bytes(6, "a"))),
              HasSubstr("has 1 elements, string [3] takes 3"));
  EXPECT_THAT(refusal_of(tensor("s", 8, {1}, bytes(9, "a"))),
              HasSubstr("holds strings, which cannot be in raw_data"));
}

TEST(Tensors, PackedDimsAreDims) {
  EXPECT_THAT(tensor_of(packed(1, {1, 2}) + number(2, 1) + bytes(9, raw({1.F, 2.F}))).dims,
              ElementsAre(1, 2));
}

TEST(Tensors, Int32OfThirtyTwoBitsIsNegative) {
  const std::string minus_one = varint(5 << 3) + varint(0xFFFFFFFF);
  EXPECT_THAT(as<std::int32_t>(tensor_of(tensor("t", 6, {1}, minus_one)).elements()),
              ElementsAre(-1));
}

TEST(Tensors, DimsAreNoneNegativeAndOfBoundedSize) {
  EXPECT_THAT(refusal_of(tensor("t", 1, {2, -1})),
              HasSubstr("tensor 't': its dims are [2, -1]; none may be negative"));
  EXPECT_THAT(refusal_of(tensor("t", 1, {1LL << 31, 1LL << 31})),
              HasSubstr("too large for any memory"));
  EXPECT_THAT(refusal_of(tensor("t", 2, {1LL << 62, 4})), HasSubstr("too large for any memory"));
  EXPECT_THAT(refusal_of(tensor("t", 1, {1LL << 62, 1LL << 62, 0})),
              HasSubstr("too large for any memory"))
      << "a product of all but the 0 overflows";
  EXPECT_THAT(refusal_of(tensor("t", 1, {1LL << 40})), HasSubstr("has 0 elements"))
      << "nothing is allocated for elements that are not there";
  std::string many;
  for (int i = 0; i < 65; ++i) many += number(1, 1);
  EXPECT_THAT(refusal_of(many + number(2, 1)), HasSubstr("the tensor: has 65 dims, at most 64"));
}

TEST(Tensors, OfTypesThatAreNotImportedAreNamed) {
  EXPECT_THAT(
      refusal_of(tensor("t", 17, {1}, bytes(9, "x"))),
      HasSubstr("tensor 't': has elements of type float8e4m3fn; those that are read are float32, "
                "float64, float16, bfloat16, int8 to int64, uint8 to uint64, bool and string"));
  EXPECT_THAT(refusal_of(tensor("t", 14, {1})), HasSubstr("type complex64;"));
  EXPECT_THAT(refusal_of(tensor("t", 0, {1})), HasSubstr("type undefined;"));
  EXPECT_THAT(refusal_of(tensor("t", 99, {1})), HasSubstr("the unknown type 99;"));
  EXPECT_THAT(refusal_of(tensor("t", -1, {1})), HasSubstr("the unknown type -1;"));
  EXPECT_THAT(refusal_of(bytes(8, "t") + number(2, INT64_MIN)), HasSubstr("the unknown type"));
}

TEST(Tensors, HaveTheirElementsInOnePlace) {
  const std::string one_raw = bytes(9, raw({1.F}));
  EXPECT_THAT(
      refusal_of(tensor("t", 1, {1}, one_raw + real(4, 1))),
      HasSubstr("tensor 't': has elements in both raw_data and float_data; one may hold them"));
  EXPECT_THAT(refusal_of(tensor("t", 1, {1}, real(4, 1) + number(7, 1))),
              HasSubstr("has elements in both float_data and int64_data"));
  EXPECT_THAT(refusal_of(tensor("t", 1, {1}, number(5, 1))),
              HasSubstr("has elements in int32_data; those of float32 are in float_data"));
  EXPECT_THAT(refusal_of(tensor("t", 1, {1}, one_raw + one_raw)),
              HasSubstr("field 9 occurs twice, and may occur once"));
  EXPECT_THAT(refusal_of(tensor("t", 1, {1}, bytes(3, "") + one_raw)),
              HasSubstr("it is a segment of a tensor"));
  EXPECT_THAT(refusal_of(tensor("t", 1, {1}, external("w.bin"))),
              HasSubstr("its elements are in another file; here they must be in this one"));
}

TEST(Tensors, ElementsAreInTheRangeOfTheirType) {
  EXPECT_THAT(refusal_of(tensor("t", 3, {1}, number(5, 128))),
              HasSubstr("tensor 't': 128 in int32_data is not a int8 (-128 to 127)"));
  EXPECT_THAT(refusal_of(tensor("t", 2, {1}, number(5, -1))),
              HasSubstr("-1 in int32_data is not a uint8"));
  EXPECT_THAT(refusal_of(tensor("t", 10, {1}, number(5, 65536))), HasSubstr("is not a float16"));
  EXPECT_THAT(refusal_of(tensor("t", 6, {1}, number(5, 1LL << 32))), HasSubstr("is not a int32"));
  EXPECT_THAT(refusal_of(tensor("t", 12, {1}, number(11, 1LL << 32))),
              HasSubstr("is not a uint32"));
  EXPECT_THAT(refusal_of(tensor("t", 9, {1}, number(5, 2))), HasSubstr("is not a bool (0 to 1)"));
  EXPECT_THAT(refusal_of(tensor("t", 9, {1}, bytes(9, "\x02"))),
              HasSubstr("has a bool that is neither 0 nor 1"));
}

TEST(Tensors, ThatGrowTooMuchAreRefused) {
  // A byte a number in the file, 8 in memory.
  const std::string zeros(20'000'000, '\0');
  EXPECT_THAT(refusal_of(tensor("t", 7, {20'000'000}, bytes(7, zeros))),
              HasSubstr("reading it would need more than 108 MB of memory"));
}

}  // namespace
}  // namespace decent::onnx::file_bytes
