#include "decent/onnx/format/element_types.h"

#include <array>
#include <cstddef>

#include "decent/onnx/format/wording.h"

namespace decent::onnx {
namespace {

struct TypeRow {
  std::string_view name;
  std::uint64_t size = 0;  // 0: not imported, or of no fixed size
};

// By number.
constexpr std::array<TypeRow, 29> kTypes = {{
    {"undefined"},      {"float32", 4},  {"uint8", 1},     {"int8", 1},        {"uint16", 2},
    {"int16", 2},       {"int32", 4},    {"int64", 8},     {"string"},         {"bool", 1},
    {"float16", 2},     {"float64", 8},  {"uint32", 4},    {"uint64", 8},      {"complex64"},
    {"complex128"},     {"bfloat16", 2}, {"float8e4m3fn"}, {"float8e4m3fnuz"}, {"float8e5m2"},
    {"float8e5m2fnuz"}, {"uint4"},       {"int4"},         {"float4e2m1"},     {"float8e8m0"},
    {"uint2"},          {"int2"},        {"float6e2m3"},   {"float6e3m2"},
}};
// The types after it have 8 bits or fewer: float8, int4 ..
constexpr ElementType kLastWide = ElementType::bfloat16;
static_assert(kTypes[static_cast<std::size_t>(ElementType::bfloat16)].name == "bfloat16");

bool is_known(std::int64_t number) {
  return number >= 0 && number < static_cast<std::int64_t>(kTypes.size());
}

// A file may have any number as a type; numbers that are no type count as undefined.
const TypeRow& row_of(ElementType type) {
  const auto number = static_cast<std::int64_t>(type);
  return kTypes[is_known(number) ? static_cast<std::size_t>(number) : 0];
}

}  // namespace

std::uint64_t size_of(ElementType type) { return row_of(type).size; }

std::string name_of(ElementType type) { return std::string(row_of(type).name); }

ElementType element_type(std::int64_t number) {
  if (!is_known(number)) return ElementType::undefined;
  const auto type = static_cast<ElementType>(number);
  return type == ElementType::string || size_of(type) > 0 ? type : ElementType::undefined;
}

std::string name_of_number(std::int64_t number) {
  if (!is_known(number)) return "the unknown type " + std::to_string(number);
  return name_of(static_cast<ElementType>(number));
}

std::string refused_type_text(std::int64_t number) {
  const std::string text =
      "type " + name_of_number(number) +
      "; those that are read are float32, float64, float16, bfloat16, int8 to int64, uint8 to "
      "uint64, bool and string";
  const bool is_narrow = is_known(number) && number > static_cast<std::int64_t>(kLastWide);
  return is_narrow
             ? text + ", as such elements are those of a quantised model.\n" + quantised_advice()
             : text;
}

}  // namespace decent::onnx
