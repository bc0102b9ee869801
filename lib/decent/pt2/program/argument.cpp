#include "decent/pt2/program/argument.h"

#include <algorithm>
#include <array>

namespace decent::pt2 {
namespace {

struct ScalarTypeFacts {
  ScalarType type;
  std::string_view name;
  std::uint64_t size;
};

constexpr auto kScalarTypes = std::to_array<ScalarTypeFacts>({
    {ScalarType::unknown, "unknown", 0},
    {ScalarType::uint8, "uint8", 1},
    {ScalarType::int8, "int8", 1},
    {ScalarType::int16, "int16", 2},
    {ScalarType::int32, "int32", 4},
    {ScalarType::int64, "int64", 8},
    {ScalarType::float16, "float16", 2},
    {ScalarType::float32, "float32", 4},
    {ScalarType::float64, "float64", 8},
    {ScalarType::complex32, "complex32", 4},
    {ScalarType::complex64, "complex64", 8},
    {ScalarType::complex128, "complex128", 16},
    {ScalarType::boolean, "bool", 1},
    {ScalarType::bfloat16, "bfloat16", 2},
    {ScalarType::uint16, "uint16", 2},
    {ScalarType::float8_e4m3fn, "float8_e4m3fn", 1},
    {ScalarType::float8_e5m2, "float8_e5m2", 1},
    {ScalarType::float8_e4m3fnuz, "float8_e4m3fnuz", 1},
    {ScalarType::float8_e5m2fnuz, "float8_e5m2fnuz", 1},
    {ScalarType::float8_e8m0fnu, "float8_e8m0fnu", 1},
    {ScalarType::uint32, "uint32", 4},
    {ScalarType::uint64, "uint64", 8},
});

const ScalarTypeFacts& facts_of(ScalarType type) {
  return *std::ranges::find(kScalarTypes, type, &ScalarTypeFacts::type);
}

}  // namespace

std::string_view name_of(ScalarType type) { return facts_of(type).name; }

std::uint64_t size_of(ScalarType type) { return facts_of(type).size; }

std::optional<ScalarType> find_scalar_type(std::int64_t number) {
  for (const ScalarTypeFacts& each : kScalarTypes) {
    if (static_cast<std::int64_t>(each.type) == number) return each.type;
  }
  return std::nullopt;
}

}  // namespace decent::pt2
