#include "decent/data/csv/cells.h"

#include <algorithm>
#include <cstring>

#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent::csv {

std::string CellReader::where() const { return file_ + ":" + std::to_string(row_line_) + ": "; }

void CellReader::fail(const std::string& text) const { throw UserError(where() + text); }

// A sparse file may have 30 GB of zeros that take no space on the disk.
void CellReader::fail_long() const {
  fail("column " + std::to_string(columns_) +
       ": the cell has more than 16 MiB: is this file damaged, or another separator's?");
}

void CellReader::fail_encoding(const std::string& column, std::string_view text) const {
  fail(
      column + ": the text " + in_quotes(text) +
      " is not UTF-8 (Latin-1 or Windows-1252?); convert the file: iconv -f WINDOWS-1252 -t UTF-8");
}

void CellReader::fail_line_end() const {
  fail("column " + std::to_string(columns_) +
       ": a CR stands inside of a cell, while other lines end with LF; end all lines alike "
       "(tr '\\r' '\\n'), or put the cell in quotes");
}

Cell CellReader::take_quoted() {
  quotes_ = true;
  unquoted_.clear();
  const char* begin = at_ + 1;
  const std::int64_t opened = line_;
  while (true) {
    const auto left = static_cast<std::size_t>(std::min(end_ - begin, kMostCell));
    const auto* quote = static_cast<const char*>(std::memchr(begin, '"', left));
    if (quote == nullptr && begin + left != end_) fail_long();
    if (quote == nullptr) {
      throw UserError(file_ + ":" + std::to_string(opened) + ": column " +
                      std::to_string(columns_) + ": expected a closing quote before the file ends");
    }
    line_ += std::count(begin, quote, '\n');
    const bool doubled = quote + 1 != end_ && quote[1] == '"';
    const std::string_view piece(begin, static_cast<std::size_t>(quote + doubled - begin));
    if (!doubled && !ends_cell(quote + 1)) {
      throw UserError(file_ + ":" + std::to_string(line_) + ": column " + std::to_string(columns_) +
                      ": expected a separator or the end of the line after a closing quote (a "
                      "quote inside of quotes is written twice)");
    }
    if (!doubled && unquoted_.empty()) {  // mostly: no copy
      finish(quote + 1);
      return {.text = piece, .quoted = true};
    }
    unquoted_ += piece;
    if (!doubled) {
      finish(quote + 1);
      return {.text = unquoted_, .quoted = true};
    }
    begin = quote + 2;
  }
}

}  // namespace decent::csv
