#include "decent/data/csv/row_index.h"

#include <algorithm>

namespace decent::csv {

RowIndex::RowIndex(std::shared_ptr<const TextFile> file, CellFormat format, std::size_t begin,
                   std::int64_t line)
    : file_(std::move(file)), format_(format), begin_(begin), line_(line) {}

void RowIndex::add(std::size_t offset, std::int64_t line) {
  constexpr std::size_t kMarkEvery = 4096;
  if (marks_.empty() || offset - marks_.back().offset >= kMarkEvery)
    marks_.push_back({.row = size_, .offset = offset, .line = line});
  ++size_;
}

const RowIndex::Mark& RowIndex::mark_of(std::int64_t row) const {
  const auto next =
      std::upper_bound(marks_.begin(), marks_.end(), row,
                       [](std::int64_t wanted, const Mark& mark) { return wanted < mark.row; });
  return *std::prev(next);
}

std::string_view RowIndex::rows_from(const Mark& mark, std::string& buffer) const {
  const auto next = static_cast<std::size_t>(&mark - marks_.data()) + 1;
  const std::size_t end = next < marks_.size() ? marks_[next].offset : file_->text().size();
  return file_->piece(mark.offset, end - mark.offset, buffer);
}

}  // namespace decent::csv
