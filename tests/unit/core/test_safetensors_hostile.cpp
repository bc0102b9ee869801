// Damaged and hostile files: each is refused with a message that names the file and says what is
// wrong.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../support/safetensors_bytes.h"
#include "decent/core/error.h"
#include "decent/core/safetensors.h"

namespace decent {
namespace {

using ::testing::HasSubstr;
using testing::length_bytes;
using testing::safetensors_bytes;
using ::testing::StartsWith;

struct Hostile {
  std::string name;
  std::string bytes;
  std::string message;  // a part of it
};

void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

std::string repeated(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

// One tensor 'w' with the given parts, over `data`.
std::string one(std::string_view dtype, std::string_view shape, std::string_view offsets,
                std::string_view data = "") {
  return safetensors_bytes(R"({"w":{"dtype":)" + std::string(dtype) + R"(,"shape":)" +
                               std::string(shape) + R"(,"data_offsets":)" + std::string(offsets) +
                               "}}",
                           data);
}

// Two U8 vectors 'a' and 'b' over `data`.
std::string two(std::string_view offsets_a, std::string_view offsets_b, int size_a, int size_b,
                std::string_view data) {
  const auto entry = [](int size, std::string_view offsets) {
    return R"(:{"dtype":"U8","shape":[)" + std::to_string(size) + R"(],"data_offsets":)" +
           std::string(offsets) + "}";
  };
  return safetensors_bytes(
      R"({"a")" + entry(size_a, offsets_a) + R"(,"b")" + entry(size_b, offsets_b) + "}", data);
}

const std::string kEntry = R"({"dtype":"U8","shape":[],"data_offsets":[0,1]})";

class HostileSafetensors : public ::testing::TestWithParam<Hostile> {};

TEST_P(HostileSafetensors, IsRefused) {
  try {
    parse_safetensors(testing::as_bytes(GetParam().bytes), "x.safetensors");
    FAIL() << "was parsed";
  } catch (const UserError& error) {
    const std::string message = error.what();
    EXPECT_THAT(message, StartsWith("'x.safetensors': "));
    EXPECT_THAT(message, HasSubstr(GetParam().message));
    EXPECT_LT(message.size(), 400U);
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

std::string case_name(const ::testing::TestParamInfo<Hostile>& info) { return info.param.name; }

INSTANTIATE_TEST_SUITE_P(
    File, HostileSafetensors,
    ::testing::Values(
        Hostile{"empty", "", "it has 0 bytes"}, Hostile{"seven_bytes", "1234567", "it has 7 bytes"},
        Hostile{"header_beyond_file", length_bytes(3) + "{}", "truncated"},
        Hostile{"header_over_100_mb", length_bytes(100'000'001) + "{}", "100 MB"},
        Hostile{"header_length_all_ones", std::string(8, '\xFF') + "{}", "18446744073709551615"},
        Hostile{"header_empty", length_bytes(0), "does not begin with '{'"},
        Hostile{"header_begins_with_space", safetensors_bytes(" {}"), "does not begin with '{'"},
        Hostile{"a_zip_archive", "PK\x03\x04" + std::string(60, 'z'), "not a safetensors file"},
        Hostile{"trailing_bytes", safetensors_bytes("{}", "xyz"), "3 bytes at its end"}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Json, HostileSafetensors,
    ::testing::Values(
        Hostile{"not_json", safetensors_bytes("{hello}"), "not valid UTF-8 JSON"},
        Hostile{"unclosed", safetensors_bytes(R"({"w":{)"), "not valid UTF-8 JSON"},
        Hostile{"second_value", safetensors_bytes("{}{}"), "not valid UTF-8 JSON"},
        Hostile{"nul_padding", safetensors_bytes(std::string_view("{}\0\0", 4)), "zero byte"},
        Hostile{"hidden_behind_nul", safetensors_bytes(std::string_view("{}\0{hidden", 10)),
                "zero byte"},
        Hostile{"invalid_utf8", safetensors_bytes("{\"\xC3\x28\":" + kEntry + "}", "x"),
                "not valid UTF-8 JSON"},
        Hostile{"lone_surrogate", safetensors_bytes(R"({"\ud800":)" + kEntry + "}", "x"),
                "not valid UTF-8 JSON"},
        Hostile{"comment", safetensors_bytes("{/* */}"), "not valid UTF-8 JSON"},
        Hostile{"huge_float", one("\"U8\"", "[1e999]", "[0,1]", "x"), "not valid UTF-8 JSON"},
        Hostile{"deep_lists", safetensors_bytes(R"({"w":)" + repeated("[", 100'000)),
                "found a list"},
        Hostile{"deep_objects", safetensors_bytes(repeated(R"({"w":)", 100'000)),
                "unknown key 'w'"},
        Hostile{"deep_shape", one("\"U8\"", repeated("[", 100'000), "[0,1]", "x"), "found a list"}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Structure, HostileSafetensors,
    ::testing::Values(
        Hostile{"tensor_is_null", safetensors_bytes(R"({"w":null})"), "tensor 'w': found null"},
        Hostile{"tensor_is_number", safetensors_bytes(R"({"w":1})"), "tensor 'w': found a number"},
        Hostile{"tensor_is_string", safetensors_bytes(R"({"w":"F32"})"),
                "tensor 'w': found a string"},
        Hostile{"tensor_is_true", safetensors_bytes(R"({"w":true})"),
                "tensor 'w': found a boolean"},
        Hostile{"no_dtype", safetensors_bytes(R"({"w":{"shape":[],"data_offsets":[0,1]}})", "x"),
                "'w' has no dtype"},
        Hostile{"no_shape", safetensors_bytes(R"({"w":{"dtype":"U8","data_offsets":[0,1]}})", "x"),
                "has no shape"},
        Hostile{"no_offsets", safetensors_bytes(R"({"w":{"dtype":"U8","shape":[]}})"),
                "has no data_offsets"},
        Hostile{"empty_entry", safetensors_bytes(R"({"w":{}})"), "'w' has no dtype"},
        Hostile{"unknown_key", safetensors_bytes(R"({"w":{"stride":[1]}})"),
                "unknown key 'stride'"},
        Hostile{"duplicate_tensor",
                safetensors_bytes(R"({"w":)" + kEntry + R"(,"v":{"dtype":"U8","shape":[],)" +
                                      R"("data_offsets":[1,2]},"w":{"dtype":"U8","shape":[],)" +
                                      R"("data_offsets":[2,3]}})",
                                  "xyz"),
                "tensor 'w' is there twice"},
        Hostile{"duplicate_dtype", safetensors_bytes(R"({"w":{"dtype":"U8","dtype":"U8"}})"),
                "dtype is there twice"},
        Hostile{"duplicate_shape", safetensors_bytes(R"({"w":{"shape":[1],"shape":[1]}})"),
                "shape is there twice"},
        Hostile{"metadata_twice", safetensors_bytes(R"({"__metadata__":{},"__metadata__":{}})"),
                "there twice"},
        Hostile{"metadata_key_twice", safetensors_bytes(R"({"__metadata__":{"k":"1","k":"2"}})"),
                "'k' is there twice"},
        Hostile{"metadata_number", safetensors_bytes(R"({"__metadata__":{"k":1}})"),
                "'k': found a number"},
        Hostile{"metadata_object", safetensors_bytes(R"({"__metadata__":{"k":{}}})"),
                "'k': found an object"},
        Hostile{"metadata_list", safetensors_bytes(R"({"__metadata__":["k"]})"),
                "expected an object of strings"},
        Hostile{"long_name", safetensors_bytes(R"({")" + std::string(10'000, 'n') + R"(":1})"),
                "nnn..'"},
        Hostile{"name_with_newline", safetensors_bytes(R"({"a\nb\u001b":1})"), "'a?b?'"}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Tensor, HostileSafetensors,
    ::testing::Values(
        Hostile{"unknown_dtype", one("\"F8_E4M3\"", "[1]", "[0,1]", "x"),
                "'F8_E4M3' (valid: BOOL, U8, I8"},
        Hostile{"dtype_in_lower_case", one("\"f32\"", "[1]", "[0,4]", "xxxx"),
                "tensor 'w': unknown dtype 'f32'"},
        Hostile{"dtype_is_number", one("1", "[1]", "[0,1]", "x"),
                "found a number, expected dtype as a string"},
        Hostile{"dtype_is_list", one("[]", "[1]", "[0,1]", "x"),
                "found a list, expected dtype as a string"},
        Hostile{"shape_is_number", one("\"U8\"", "1", "[0,1]", "x"),
                "expected shape as a list of integers"},
        Hostile{"shape_is_string", one("\"U8\"", "\"1\"", "[0,1]", "x"), "found a string"},
        Hostile{"shape_negative", one("\"U8\"", "[-1]", "[0,1]", "x"),
                "tensor 'w': found a negative number"},
        Hostile{"shape_fraction", one("\"U8\"", "[1.0]", "[0,1]", "x"), "found a fraction"},
        Hostile{"shape_string_inside", one("\"U8\"", "[\"1\"]", "[0,1]", "x"), "found a string"},
        Hostile{"shape_over_int64", one("\"U8\"", "[9223372036854775808]", "[0,1]", "x"),
                "out of range"},
        Hostile{"shape_over_uint64", one("\"U8\"", "[99999999999999999999]", "[0,1]", "x"),
                "out of range"},
        Hostile{"shape_product_overflows", one("\"U8\"", "[4294967296,4294967296]", "[0,0]"),
                "is too large"},
        Hostile{"bytes_overflow", one("\"F64\"", "[2305843009213693952]", "[0,0]"), "is too large"},
        Hostile{"empty_but_overflows", one("\"U8\"", "[0,4294967296,4294967296]", "[0,0]"),
                "is too large"},
        Hostile{"too_many_dimensions", one("\"U8\"", "[1" + repeated(",1", 64) + "]", "[0,1]", "x"),
                "more than 64"},
        Hostile{"size_too_small", one("\"F32\"", "[2]", "[0,4]", "xxxx"),
                "takes 8 bytes, but data_offsets [0, 4]"},
        Hostile{"size_too_large", one("\"U8\"", "[]", "[0,4]", "xxxx"), "takes 1 byte"}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Offsets, HostileSafetensors,
    ::testing::Values(
        Hostile{"one_number", one("\"U8\"", "[1]", "[0]", "x"), "must be two numbers"},
        Hostile{"three_numbers", one("\"U8\"", "[1]", "[0,1,2]", "x"),
                "more than 2 numbers in data_offsets"},
        Hostile{"negative", one("\"U8\"", "[1]", "[-1,0]", "x"), "found a negative number"},
        Hostile{"reversed", one("\"U8\"", "[1]", "[1,0]", "x"), "data_offsets [1, 0] are reversed"},
        Hostile{"beyond_file", one("\"U8\"", "[2]", "[0,2]", "x"),
                "tensor 'w': data_offsets [0, 2] go beyond the 1"},
        Hostile{"far_beyond",
                one("\"U8\"", "[1]", "[9223372036854775806,9223372036854775807]", "x"),
                "go beyond"},
        Hostile{"object", one("\"U8\"", "[1]", "{}", "x"), "found an object"},
        Hostile{"overlap", two("[0,2]", "[1,3]", 2, 2, "xyz"), "tensors 'a' and 'b' overlap"},
        Hostile{"same_range", two("[0,2]", "[0,2]", 2, 2, "xy"), "overlap"},
        Hostile{"empty_inside_another", two("[0,2]", "[1,1]", 2, 0, "xy"), "overlap"},
        Hostile{"hole_between", two("[0,1]", "[2,3]", 1, 1, "xyz"),
                "bytes 1 to 2 of its data, before tensor 'b'"},
        Hostile{"hole_at_start", two("[1,2]", "[2,3]", 1, 1, "xyz"), "bytes 0 to 1"},
        Hostile{"trailing", two("[0,1]", "[1,2]", 1, 1, "xyz"), "1 byte at its end"}),
    case_name);

}  // namespace
}  // namespace decent
