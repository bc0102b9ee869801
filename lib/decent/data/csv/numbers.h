#pragma once
// Cells as numbers and words. No torch.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/data/csv/cells.h"

namespace decent::csv {

/// The text of a cell where a number is expected.
struct Number {
  enum class Kind { number, missing, too_large, foreign, other };
  Kind kind = Kind::other;
  float value = 0;  // of a number: the nearest float32
};

/// Ignores blanks around the number, a plus sign, and the program's locale. The empty text, na,
/// n/a, nan, null, none, inf, infinity (any case, with or without a sign) and "?" are missing
/// values. `decimal` is the point or the comma; a number with the other one, or with separators of
/// thousands, is foreign.
Number number_in(std::string_view text, char decimal);

/// The end of a message about a cell that is no number: the key that would read it if it is
/// foreign.
std::string advice_on_number(std::string_view text, char decimal);

/// The number in a text, which must be one. Throws UserError that does not know the place:
/// "expected a number, got 'x'".
float needed_number(std::string_view text);

/// A whole number that fits into int64.
std::optional<std::int64_t> integer_in(std::string_view text);

/// A cell as a word: without the blanks around it, unless it is in quotes, and without the mark
/// that tables for spreadsheets put in front (csv_cell.h). An empty word is a missing value.
std::string_view word_in(const Cell& cell);

/// The index of `word` in `sorted`, which is sorted bytewise.
std::optional<std::size_t> place_of(std::string_view word, const std::vector<std::string>& sorted);

}  // namespace decent::csv
