#include "decent/data/csv/numbers.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "decent/core/csv_cell.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
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

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string result(text);
  for (std::size_t at = 0; (at = result.find(from, at)) != std::string::npos; at += to.size())
    result.replace(at, from.size(), to);
  return result;
}

std::size_t leading_digits(std::string_view text) {
  return std::min(text.find_first_not_of("0123456789"), text.size());
}

// One to three digits, then groups of three behind one mark, then perhaps another mark and digits:
// 1,234 and 1.234.567,8 and 12 345,6.
bool has_thousands(std::string_view text) {
  const std::string plain = replaced(replaced(text, "\u00A0", " "), "\u202F", " ");
  text = plain;
  if (text.starts_with('-')) text.remove_prefix(1);
  const std::size_t first = leading_digits(text);
  if (first < 1 || first > 3 || first == text.size()) return false;
  const char mark = text[first];
  if (std::string_view(",.' ").find(mark) == std::string_view::npos) return false;
  text.remove_prefix(first);
  std::size_t groups = 0;
  for (; text.starts_with(mark) && leading_digits(text.substr(1)) == 3; ++groups)
    text.remove_prefix(4);
  if (groups == 0 || text.empty()) return groups > 0;
  const bool fraction = mark != text[0] && (text[0] == '.' || text[0] == ',');
  return fraction && leading_digits(text.substr(1)) == text.size() - 1;
}

Number point_number(std::string_view text);

// A number with a comma in place of the point.
Number comma_number(std::string_view text) {
  if (text.find('.') != std::string_view::npos) return {.kind = Number::Kind::other};
  return point_number(replaced(text, ",", "."));
}

// Reads a text without blanks around it, whose decimal mark is the point.
Number point_number(std::string_view text) {
  using Kind = Number::Kind;
  text = without_plus(text);
  float value = 0;
  const std::errc error = parse(text, value);
  // Texts that are not finite but none of the words above: nan(1).
  if (error == std::errc() && std::isfinite(value)) return {.kind = Kind::number, .value = value};
  if (error != std::errc::result_out_of_range) return {.kind = Kind::other};
  // Too close to zero or too large for float32. If it is beyond double too, the two cannot be told
  // apart.
  double wide = 0;
  if (parse(text, wide) != std::errc() || std::abs(wide) > 1) return {.kind = Kind::too_large};
  return {.kind = Kind::number, .value = static_cast<float>(wide)};
}

bool is_number(const Number& number) {
  return number.kind == Number::Kind::number || number.kind == Number::Kind::too_large;
}

}  // namespace

Number number_in(std::string_view text, char decimal) {
  text = trimmed(text);
  if (is_missing(text)) return {.kind = Number::Kind::missing};
  const bool comma = decimal == ',';
  const Number number = comma ? comma_number(text) : point_number(text);
  if (number.kind != Number::Kind::other) return number;
  const bool foreign = is_number(comma ? point_number(text) : comma_number(text)) ||
                       has_thousands(without_plus(text));
  return {.kind = foreign ? Number::Kind::foreign : Number::Kind::other};
}

std::string advice_on_number(std::string_view text, char decimal) {
  if (number_in(text, decimal).kind != Number::Kind::foreign) return "";
  const std::string thousands =
      "separators of thousands are not read: write such numbers without them";
  if (decimal == ',')
    return "; `decimal: \",\"` takes the comma alone for the decimal mark, and " + thousands;
  if (!is_number(comma_number(trimmed(text)))) return "; " + thousands;
  return "; where the comma is the decimal mark, say `decimal: \",\"`" +
         (has_thousands(without_plus(trimmed(text))) ? "; " + thousands : "");
}

float needed_number(std::string_view text) {
  const Number number = number_in(text, '.');
  if (number.kind == Number::Kind::number) return number.value;
  const bool large = number.kind == Number::Kind::too_large;
  throw UserError(std::string("expected a number") + (large ? " that fits into float32" : "") +
                  ", got " + in_quotes(text));
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
