#include "decent/core/quote.h"

#include <algorithm>
#include <cstddef>

namespace decent {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// How many bytes the character at `i` has; 0 if it is not well-formed UTF-8.
std::size_t length_of_character(std::string_view text, std::size_t i) {
  const unsigned char first = byte_at(text, i);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || i + length > text.size()) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    if ((byte_at(text, i + k) & 0xC0) != 0x80) return 0;
  }
  // Refuses forms that are not the shortest, halves of surrogate pairs, and numbers beyond the last
  // character.
  const unsigned char second = byte_at(text, i + 1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F)) return 0;
  if ((first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) return 0;
  return length;
}

bool is_control(unsigned char c) { return c < 0x20 || c == 0x7F; }

}  // namespace

std::string on_one_line(std::string_view text) {
  constexpr std::size_t kMaxShownBytes = 80;
  std::string shown;
  std::size_t i = 0;
  while (i < text.size()) {
    const std::size_t length = length_of_character(text, i);
    if (i + std::max<std::size_t>(length, 1) > kMaxShownBytes) break;
    if (length == 0 || is_control(byte_at(text, i))) {
      shown += '?';
    } else {
      shown += text.substr(i, length);
    }
    i += std::max<std::size_t>(length, 1);
  }
  return shown + (i < text.size() ? ".." : "");
}

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = length_of_character(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string in_quotes(std::string_view text) { return "'" + on_one_line(text) + "'"; }

}  // namespace decent
