#pragma once
// A file of separated text as a table: checked once from end to end, then read at random. No torch.

#include <memory>
#include <optional>

#include "decent/data/csv/layout.h"
#include "decent/data/csv/row_index.h"
#include "decent/data/csv/survey.h"
#include "decent/data/csv/text_file.h"

namespace decent::csv {

/// The replacement of a missing number in x: a number, or the mean of its column. None: a missing
/// number is an error.
struct Filling {
  bool mean = false;
  std::optional<float> number;

  bool any() const { return mean || number; }
};

struct Table {
  Layout layout;
  RowIndex rows;
  std::int64_t filled = 0;  // cells of x that were missing
};

/// Reads all rows. Each must have as many cells as the first, with contents that fit their columns.
/// The target is checked against `known` if that is given; otherwise `survey` learns it. Throws
/// UserError with the line and the column.
Table scan(std::shared_ptr<const TextFile> file, Layout layout, const Filling& filling,
           const Learned* known, Survey* survey);

}  // namespace decent::csv
