#include "decent/core/text.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <limits>

namespace decent {
namespace {

char fold(char c) { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Optimal string alignment: insertions, deletions, substitutions, swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = fold(a[i - 1]) == fold(b[j - 1]) ? 0 : 1;
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change});
      if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) && fold(a[i - 2]) == fold(b[j - 1])) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

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

std::optional<std::string> nearest_name(std::string_view word,
                                        std::span<const std::string> candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

bool glob_matches(std::string_view pattern, std::string_view text) {
  // The position of the last *, and how much of the text it has taken so far. After a mismatch,
  // matching only ever goes back to there.
  std::size_t p = 0, t = 0;
  std::size_t star = std::string_view::npos, taken = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      taken = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++taken;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

std::string join(std::span<const std::string> parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += separator;
    text += part;
  }
  return text;
}

std::string some_of(std::span<const std::string> names, std::size_t most) {
  if (names.size() <= most) return join(names);
  return join(names.first(most)) + " and " + std::to_string(names.size() - most) + " more";
}

std::string counted(std::int64_t count, std::string_view one, std::string_view several) {
  const std::string name(count == 1 || several.empty() ? one : several);
  return std::to_string(count) + " " + name + (count != 1 && several.empty() ? "s" : "");
}

double printable(double number) {
  return std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number;
}

std::string number_text(double number) {
  std::array<char, 32> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  return {buffer.data(), end};
}

std::string short_number_text(double number) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g", number);
  return text.data();
}

std::string count_text(std::int64_t count) {
  std::array<char, 32> text{};
  if (count < 10'000) return std::to_string(count);
  const bool is_thousands = count < 1'000'000;
  const double value = static_cast<double>(count) / (is_thousands ? 1e3 : 1e6);
  std::snprintf(text.data(), text.size(), is_thousands ? "%.1fk" : "%.1fM", value);
  return text.data();
}

std::string seconds_text(std::chrono::duration<double> time) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f", time.count());
  std::string result = text.data();
  if (result.ends_with(".0")) result.resize(result.size() - 2);
  return result + " s";
}

std::string hex_text(std::span<const unsigned char> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) text += {kDigits[byte / 16], kDigits[byte % 16]};
  return text;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::vector<std::string> parts;
  for (std::int64_t extent : shape) parts.push_back(std::to_string(extent));
  return "[" + join(parts) + "]";
}

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
