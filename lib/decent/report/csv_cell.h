#pragma once
// Texts in CSV files that are written.

#include <string>

namespace decent {

/// A cell of a CSV file (RFC 4180), in quotes where it has to be.
inline std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace decent
