#pragma once
// Tables of separated text (CSV) as a data source. No torch.

#include <memory>

#include "decent/data/csv/layout.h"
#include "decent/data/csv/survey.h"
#include "decent/data/csv/text_file.h"
#include "decent/data/formats.h"
#include "decent/data/source.h"

namespace decent::csv {

/// Fields x float32 [columns], and y: float32 [columns] or int64, the class. The files are read as
/// those of `reference`, see open_csv_as, or by themselves where that is empty; then y need not be
/// there where it is not needed, see without_target. Throws UserError, with the line and the column
/// of what is wrong.
std::unique_ptr<Source> open_csv(const TextFiles& files, const TextFiles& reference,
                                 const CsvOptions& options, bool needs_target = true);

/// What was learned of training data.
struct KnownTable {
  KnownColumns columns;
  Learned learned;
};

/// What training data of those files teaches. Throws UserError.
KnownTable learn_table(const TextFiles& files, const CsvOptions& options);

/// Reads files as the training data was read; `trained` are its keys. Classes, categories and means
/// are those of `known`: a word that is not among them is an error with its line. A `reference`
/// must have the same.
std::unique_ptr<Source> open_csv_as(const TextFiles& files, const TextFiles& reference,
                                    const CsvOptions& options, const KnownTable& known,
                                    const CsvOptions& trained, bool needs_target);

/// KnownTable as values with names, but for the classes, which stand beside them; and back, from a
/// reading that has learned something. Throws UserError naming reading.where for values that no
/// table has given.
Options options_of(const KnownTable& known);
KnownTable known_table_in(const Reading& reading);

}  // namespace decent::csv
