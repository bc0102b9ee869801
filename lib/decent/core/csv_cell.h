#pragma once
// Texts in CSV files: a mark in front of those that spreadsheets would take for formulas.

#include <charconv>
#include <string>
#include <string_view>

namespace decent {

/// Whether spreadsheets would take a text for a formula, or for the mark of a text, which csv_cell
/// puts in front of those. Numbers are none.
inline bool begins_as_formula(std::string_view text) {
  if (text.find_first_of("=+-@\t\r'") != 0) return false;
  double number = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec != std::errc() || read.ptr != end;
}

/// A cell of a CSV file (RFC 4180), in quotes where it has to be. One that begins as a formula has
/// a ' in front, by which spreadsheets know a text.
inline std::string csv_cell(const std::string& given) {
  const std::string text = begins_as_formula(given) ? "'" + given : given;
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

/// The text of a cell that csv_cell has written, out of its quotes.
inline std::string_view without_mark(std::string_view text) {
  const bool is_marked = text.starts_with('\'') && begins_as_formula(text.substr(1));
  return is_marked ? text.substr(1) : text;
}

}  // namespace decent
