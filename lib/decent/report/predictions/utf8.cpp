#include "decent/report/predictions/utf8.h"

#include <bit>
#include <cstdint>

namespace decent {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

struct Character {
  char32_t value = kReplacement;
  std::size_t bytes = 1;
};

// The first character of the text, which is not empty.
Character first_of(std::string_view text) {
  const auto lead = static_cast<std::uint8_t>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const auto bytes = static_cast<std::size_t>(std::countl_one(lead));
  if (bytes < 2 || bytes > 4 || text.size() < bytes) return {};
  char32_t value = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<std::uint8_t>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    value = value << 6 | (next & 0x3FU);
  }
  constexpr char32_t kSmallestOfLength[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  if (value < kSmallestOfLength[bytes] || value > 0x10FFFF || surrogate) return {};
  return {value, bytes};
}

}  // namespace

std::u32string code_points(std::string_view text) {
  std::u32string characters;
  while (!text.empty()) {
    const Character character = first_of(text);
    characters += character.value;
    text.remove_prefix(character.bytes);
  }
  return characters;
}

}  // namespace decent
