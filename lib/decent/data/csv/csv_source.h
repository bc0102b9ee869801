#pragma once
// Tables of separated text (CSV) as a data source. No torch.

#include <memory>
#include <optional>

#include "decent/data/csv/layout.h"
#include "decent/data/csv/survey.h"
#include "decent/data/csv/text_file.h"
#include "decent/data/formats.h"
#include "decent/data/source.h"

namespace decent::csv {

/// Fields x float32 [columns], and y: float32 [columns] or int64, the class. Classes, categories
/// and means come from `reference`, or from the files themselves where that is empty. Throws
/// UserError, with the line and the column of what is wrong.
std::unique_ptr<Source> open_csv(const TextFiles& files, const TextFiles& reference,
                                 const CsvOptions& options);

/// What a run has learned of its training data.
struct KnownTable {
  KnownColumns columns;
  Learned learned;
};

/// Reads files as the training data was read; `trained` are its keys. Classes, categories and means
/// are those of `known`: a word that is not among them is an error with its line. A `reference`
/// must have the same.
std::unique_ptr<Source> open_csv_as(const TextFiles& files, const TextFiles& reference,
                                    const CsvOptions& options, const KnownTable& known,
                                    const CsvOptions& trained, bool needs_target);

/// The same without y: which columns x are, without_target() says, of the first reference or else
/// of `like`.
std::unique_ptr<Source> open_csv_inputs(const TextFiles& files, const TextFiles& reference,
                                        const std::optional<Layout>& like,
                                        const CsvOptions& options);

/// KnownTable as values with names, but for the classes, which stand beside them; and back, from a
/// reading that has learned something. Throws UserError naming reading.where for values that no
/// table has given.
Options options_of(const KnownTable& known);
KnownTable known_table_in(const Reading& reading);

}  // namespace decent::csv
