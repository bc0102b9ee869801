#pragma once
// Cells of CSV files. A text that spreadsheets would take for a formula gets a mark in front.

#include <charconv>
#include <string>
#include <string_view>

namespace decent {

/// Whether spreadsheets would take the text for a formula, or its first character for the mark '
/// that csv_cell puts in front of formulas. False for numbers.
inline bool begins_as_formula(std::string_view text) {
  if (text.find_first_of("=+-@\t\r'") != 0) return false;
  double number = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec != std::errc() || read.ptr != end;
}

/// A cell of a CSV file (RFC 4180), quoted if necessary. A text that begins as a formula gets a '
/// in front, which tells spreadsheets that it is text.
inline std::string csv_cell(const std::string& given) {
  std::string text = begins_as_formula(given) ? "'" + given : given;
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

/// The text from which csv_cell made this cell; its quotes must have been removed already.
inline std::string_view without_mark(std::string_view text) {
  const bool is_marked = text.starts_with('\'') && begins_as_formula(text.substr(1));
  return is_marked ? text.substr(1) : text;
}

}  // namespace decent
