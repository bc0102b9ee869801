#pragma once
// Rows and cells of separated text (RFC 4180), read in one pass. No torch.
//
// The reader is our own, because of the two parsers in Debian, libcsv copies every cell and does
// not tell its line, and the other one needs the number of columns at compile time. docs/csv.md has
// the measurement.

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

#include "decent/core/file.h"

namespace decent::csv {

/// The text of a cell, without its quotes; valid until the next one is read.
struct Cell {
  std::string_view text;
  bool quoted = false;
};

struct CellFormat {
  char separator = ',';
  bool quoting = true;  // whether cells may be in quotes
  char decimal = '.';   // in numbers, or a comma
  char comment = '\0';  // a line that begins with it is no row; '\0': no comments
};

/// Goes through a text cell by cell. A quoted cell may hold separators, line ends and doubled
/// quotes; a quote inside an unquoted cell is an ordinary character. Lines end with LF or CRLF,
/// except perhaps the last; empty lines and comments are no rows.
class CellReader {
 public:
  /// Messages begin with `file`. `line` is the number of the first line.
  CellReader(std::string_view text, CellFormat format, std::string_view file, std::int64_t line = 1)
      : begin_(text.data()),
        at_(begin_),
        end_(begin_ + text.size()),
        separator_(format.separator),
        quoting_(format.quoting),
        point_(format.decimal == '.'),
        comment_(format.comment),
        file_(file),
        line_(line) {}

  /// Goes to the next row. All cells of this one must have been read. False at the end.
  bool next_row() {
    while (at_ != end_ && (*at_ == '\n' || ends_line(at_) || is_comment(*at_))) skip_line();
    if (at_ == end_) return false;
    row_ = at_;
    row_line_ = line_;
    columns_ = 0;
    more_ = true;
    return true;
  }

  /// Whether the row has another cell.
  bool more() const { return more_; }
  /// How many of its cells were read.
  std::size_t columns() const { return columns_; }
  /// The offset and the line at which the row begins.
  std::size_t offset() const { return static_cast<std::size_t>(row_ - begin_); }
  std::int64_t line() const { return row_line_; }
  /// The character that the row begins with.
  char first_character() const { return *row_; }

  /// Reads the next cell if it is a plain finite number that fits into float32; otherwise reads
  /// nothing and returns false.
  bool take_number(float& out) {
    if (!point_) return false;
    const auto [end, error] = std::from_chars(at_, end_, out);
    if (error != std::errc() || !ends_cell(end) || !std::isfinite(out)) return false;
    finish(end);
    return true;
  }

  /// Reads the next cell. Throws UserError for a quote that is not closed, for text after a closing
  /// quote, for a cell of more than 16 MiB, and for a CR that does not end a line.
  Cell take() {
    if (quoting_ && at_ != end_ && *at_ == '"') return take_quoted();
    const char* const most = end_ - at_ > kMostCell ? at_ + kMostCell : end_;
    const char* end = at_;
    while (end != most && *end != separator_ && *end != '\n') ++end;
    if (end == most && end != end_) fail_long();
    const char* stop = end;
    if (stop != at_ && stop[-1] == '\r' && (end == end_ || *end == '\n')) --stop;
    const std::string_view text(at_, static_cast<std::size_t>(stop - at_));
    if (text.find('\r') != std::string_view::npos) fail_line_end();
    finish(end);
    return {.text = text, .quoted = false};
  }

  /// Reads the rest of the row.
  void finish_row() {
    while (more_) take();
  }
  /// The same, but faster if `quotes` says that no cell is quoted.
  void skip_row(bool quotes) {
    if (quotes || !more_) return finish_row();
    const auto left = static_cast<std::size_t>(end_ - at_);
    const auto* line_end = static_cast<const char*>(std::memchr(at_, '\n', left));
    more_ = false;
    finish(line_end == nullptr ? end_ : line_end);
  }

  /// Whether any cell so far was quoted.
  bool quotes() const { return quotes_; }

  /// "file:line: ", the line of the row.
  std::string where() const;
  /// Throws UserError: where(), then the text.
  [[noreturn]] void fail(const std::string& text) const;
  /// The same for the text of a column that is not UTF-8.
  [[noreturn]] void fail_encoding(const std::string& column, std::string_view text) const;

 private:
  // A CR at the end of a line, as Excel and RFC 4180 write it.
  bool ends_line(const char* p) const { return *p == '\r' && (p + 1 == end_ || p[1] == '\n'); }
  bool ends_cell(const char* p) const {
    return p == end_ || *p == separator_ || *p == '\n' || ends_line(p);
  }

  bool is_comment(char c) const { return c == comment_ && comment_ != '\0'; }

  void skip_line() {
    const auto left = static_cast<std::size_t>(end_ - at_);
    const auto* line_end = static_cast<const char*>(std::memchr(at_, '\n', left));
    at_ = line_end == nullptr ? end_ : line_end + 1;
    ++line_;
  }

  // Ends a cell at `p`, for which ends_cell must hold.
  void finish(const char* p) {
    ++columns_;
    if (p != end_ && *p == separator_) {
      at_ = p + 1;
      return;
    }
    more_ = false;
    if (p != end_ && *p == '\r') ++p;
    if (p != end_) {
      ++p;
      ++line_;
    }
    at_ = p;
  }

  Cell take_quoted();
  [[noreturn]] void fail_line_end() const;
  [[noreturn]] void fail_long() const;

  static constexpr auto kMostCell = static_cast<std::ptrdiff_t>(kMostLine);

  const char* begin_;
  const char* at_;
  const char* end_;
  char separator_;
  bool quoting_;
  bool point_;
  char comment_;
  std::string file_;
  std::int64_t line_;  // of the text that is read next
  const char* row_ = nullptr;
  std::int64_t row_line_ = 0;
  std::size_t columns_ = 0;
  bool more_ = false;
  bool quotes_ = false;
  std::string unquoted_;  // a cell with doubled quotes
};

}  // namespace decent::csv
