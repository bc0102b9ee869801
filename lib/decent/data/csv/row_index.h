#pragma once
// Where the rows of a text begin, and reading some of them. No torch.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decent/data/csv/cells.h"
#include "decent/data/csv/text_file.h"

namespace decent::csv {

/// The rows of a file after its header. Every row is added once, in order; after that, any thread
/// can read any rows. It remembers the place of about one row every 4 KiB.
class RowIndex {
 public:
  /// Takes the rows from byte `begin` on, which is in line `line`.
  RowIndex(std::shared_ptr<const TextFile> file, CellFormat format, std::size_t begin,
           std::int64_t line);

  /// Reads all rows: read_row(CellReader&) must read each to its end.
  template <class ReadRow>
  void scan(const ReadRow& read_row) {
    CellReader reader(file_->text().substr(begin_), format_, file_->name(), line_);
    while (reader.next_row()) {
      add(begin_ + reader.offset(), reader.line());
      read_row(reader);
    }
    quotes_ = reader.quotes();
  }

  /// The number of rows.
  std::int64_t size() const { return size_; }
  const TextFile& file() const { return *file_; }

  /// Calls read_row(CellReader&) for the rows `numbers` in that order; it may leave the end of a
  /// row unread. Rows that follow one another are read without going back to a place.
  template <class ReadRow>
  void read(std::span<const std::int64_t> numbers, const ReadRow& read_row) const {
    thread_local std::string buffer;  // allocated once: a call may be for one row
    std::optional<CellReader> reader;
    const Mark* mark = nullptr;
    std::int64_t next = 0;  // the row that `reader` reads next
    for (const std::int64_t number : numbers) {
      const Mark& its = mark_of(number);
      if (&its != mark || number < next) {
        mark = &its;
        next = its.row;
        reader.emplace(rows_from(its, buffer), format_, file_->name(), its.line);
      }
      for (; next < number; ++next) {
        begin_row(*reader);
        reader->skip_row(quotes_);
      }
      begin_row(*reader);
      ++next;
      read_row(*reader);
      reader->skip_row(quotes_);
    }
  }

  /// Throws the error about a row that has changed since scan().
  [[noreturn]] static void throw_changed(const CellReader& reader) {
    reader.fail("the file was changed while it was in use");
  }

 private:
  struct Mark {
    std::int64_t row = 0;
    std::size_t offset = 0;
    std::int64_t line = 1;
  };

  void add(std::size_t offset, std::int64_t line);
  const Mark& mark_of(std::int64_t row) const;
  std::string_view rows_from(const Mark& mark, std::string& buffer) const;
  static void begin_row(CellReader& reader) {
    if (!reader.next_row()) throw_changed(reader);
  }

  std::shared_ptr<const TextFile> file_;
  CellFormat format_;
  std::size_t begin_;
  std::int64_t line_;
  std::vector<Mark> marks_;
  std::int64_t size_ = 0;
  bool quotes_ = false;  // whether any cell is quoted
};

}  // namespace decent::csv
