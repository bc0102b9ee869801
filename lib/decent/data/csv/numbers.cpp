#include "decent/data/csv/numbers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "decent/core/csv_cell.h"
#include "decent/data/learned.h"

namespace decent::csv {
namespace {

std::string_view without_plus(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  return text;
}

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool is_missing(std::string_view text) {
  constexpr std::array<std::string_view, 9> kMissing = {"",     "?",    "na",  "n/a",     "nan",
                                                        "null", "none", "inf", "infinity"};
  if (text.size() > 1 && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
  return std::any_of(kMissing.begin(), kMissing.end(), [&](std::string_view each) {
    return std::equal(text.begin(), text.end(), each.begin(), each.end(),
                      [](char a, char b) { return lower(a) == b; });
  });
}

template <class T>
std::errc parse(std::string_view text, T& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error == std::errc() && end != text.data() + text.size()) return std::errc::invalid_argument;
  return error;
}

}  // namespace

Number number_in(std::string_view text) {
  using Kind = Number::Kind;
  text = trimmed(text);
  if (is_missing(text)) return {.kind = Kind::missing};
  text = without_plus(text);
  float value = 0;
  const std::errc error = parse(text, value);
  // What is not finite without being one of the words above: nan(1).
  if (error == std::errc() && std::isfinite(value)) return {.kind = Kind::number, .value = value};
  if (error != std::errc::result_out_of_range) return {.kind = Kind::other};
  // Too close to zero for float32, or too large for it; beyond double nobody can say which.
  double wide = 0;
  if (parse(text, wide) != std::errc() || std::abs(wide) > 1) return {.kind = Kind::too_large};
  return {.kind = Kind::number, .value = static_cast<float>(wide)};
}

std::optional<std::int64_t> integer_in(std::string_view text) {
  std::int64_t value = 0;
  if (parse(without_plus(trimmed(text)), value) != std::errc()) return std::nullopt;
  return value;
}

std::string_view word_in(const Cell& cell) {
  return without_mark(cell.quoted ? cell.text : trimmed(cell.text));
}

std::optional<std::size_t> place_of(std::string_view word, const std::vector<std::string>& sorted) {
  const auto found = std::lower_bound(sorted.begin(), sorted.end(), word);
  if (found == sorted.end() || *found != word) return std::nullopt;
  return static_cast<std::size_t>(found - sorted.begin());
}

}  // namespace decent::csv
