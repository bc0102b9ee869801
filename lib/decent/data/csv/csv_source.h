#pragma once
// Tables of separated text (CSV) as a data source. No torch.

#include <memory>

#include "decent/data/csv/layout.h"
#include "decent/data/csv/survey.h"
#include "decent/data/csv/text_file.h"
#include "decent/data/formats.h"
#include "decent/data/source.h"

namespace decent::csv {

/// Fields x float32 [columns], and y: float32 [columns] or int64, the class. The files are read
/// like those of `reference` (see open_csv_as). If that is empty, they are read by themselves, and
/// y may be missing if it is not needed (see without_target). Throws UserError with the line and
/// the column of a mistake.
std::unique_ptr<Source> open_csv(const TextFiles& files, const TextFiles& reference,
                                 const CsvOptions& options, bool needs_target = true);

/// What was learned from training data.
struct KnownTable {
  KnownColumns columns;
  Learned learned;
};

/// Learns from training data in these files. Throws UserError.
KnownTable learn_table(const TextFiles& files, const CsvOptions& options);

/// Reads files as the training data was read; `trained` are its keys. Classes, categories and means
/// are those of `known`, and any other word is an error with its line. A `reference` must have the
/// same classes, categories and means.
std::unique_ptr<Source> open_csv_as(const TextFiles& files, const TextFiles& reference,
                                    const CsvOptions& options, const KnownTable& known,
                                    const CsvOptions& trained, bool needs_target);

/// Converts a KnownTable to named values, without the classes, which are stored separately; and
/// back, from a reading that has learned something. Throws UserError naming reading.where for
/// values that cannot come from a table.
Options options_of(const KnownTable& known);
KnownTable known_table_in(const Reading& reading);

}  // namespace decent::csv
