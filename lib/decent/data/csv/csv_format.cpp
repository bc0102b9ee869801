// The row of the format csv in the table of formats.

#include "decent/core/error.h"
#include "decent/data/built_in.h"
#include "decent/data/csv/csv_source.h"

namespace decent::csv {
namespace {

std::optional<std::vector<std::string>> texts(const Options& options, const char* key) {
  return options.get_if<std::vector<std::string>>(key);
}

CsvOptions csv_options(const Options& options) {
  return {.x = texts(options, "x"),
          .y = texts(options, "y"),
          .drop = texts(options, "drop").value_or(std::vector<std::string>{}),
          .one_hot = texts(options, "one_hot").value_or(std::vector<std::string>{}),
          .fields = named_fields(options),
          .header = options.get<std::string>("header"),
          .separator = options.get<std::string>("separator"),
          .missing = options.get<std::string>("missing"),
          .y_type = options.get<std::string>("y_type"),
          .decimal = options.get<std::string>("decimal"),
          .comment = options.get_if<std::string>("comment")};
}

TextFiles reference_of(const Options& options) {
  const auto reference = options.get_if<Paths>("reference");
  return reference ? open_text_files(*reference) : TextFiles{};
}

std::vector<OptionKey> keys() {
  using enum OptionType;
  return {
      path_key("The file, a list of files or a glob: separated text, plain or .gz."),
      {.name = "x",
       .type = texts,
       .meaning = "Columns of the input: names, patterns (`pixel*`) or numbers from 0 (-1 is the "
                  "last); null: all but y, `drop` and columns without a name.",
       .fallback = kNull},
      {.name = "y",
       .type = texts,
       .meaning = "Columns of the target; null: the last one; `none`: there is no target.",
       .fallback = kNull},
      {.name = "drop",
       .type = texts,
       .meaning = "Columns to leave out of the input if `x` is null.",
       .fallback = kNull},
      {.name = "header",
       .type = text,
       .meaning = "Whether the first row has the names of the columns; auto: yes if none of its "
                  "cells is a number (say `true` if the names are numbers).",
       .fallback = std::string("auto"),
       .names = {"auto", "true", "false"}},
      {.name = "separator",
       .type = text,
       .meaning = "The character between cells, or `tab`; auto: the one that a first line `sep=;` "
                  "names, the tab in .tsv files, else whichever of comma, tab, semicolon and bar "
                  "is the most frequent in the first row.",
       .fallback = std::string("auto")},
      {.name = "decimal",
       .type = text,
       .meaning = "The decimal mark of numbers. Separators of thousands are not read.",
       .fallback = std::string("."),
       .names = {".", ","}},
      {.name = "comment",
       .type = text,
       .meaning = "Lines that begin with this character are skipped; null: no line is a comment.",
       .fallback = kNull},
      {.name = "missing",
       .type = text,
       .meaning = "What replaces a missing number of x: a number, or `mean`, the mean of its "
                  "column over all rows; error: rows with a missing number are refused.",
       .fallback = std::string("error"),
       .scope = OptionScope::meaning},
      {.name = "one_hot",
       .type = texts,
       .meaning = "Columns of x that hold words. Each becomes one element for each of its "
                  "different words, in bytewise order.",
       .fallback = kNull},
      fields_key(),
      {.name = "y_type",
       .type = text,
       .meaning =
           "Whether the target is numbers (float32) or a class (int64). A class is an integer, "
           "taken as it is, or a word. auto: words are classes, and numbers stay numbers.",
       .fallback = std::string("auto"),
       .names = {"auto", "number", "class"},
       .scope = OptionScope::meaning},
      {.name = "reference",
       .type = paths,
       .meaning = "Files from which classes, categories and means are taken, usually the training "
                  "data; null: the source's own files.",
       .fallback = kNull}};
}

// The keys of the training data that name columns. Values of other types are ignored, because
// data.json may be damaged.
CsvOptions column_keys(const Options& keys) {
  const auto texts_of = [&](const char* key) -> std::optional<std::vector<std::string>> {
    const auto* texts = std::get_if<std::vector<std::string>>(&keys.value(key));
    return texts == nullptr ? std::nullopt : std::optional(*texts);
  };
  CsvOptions options;
  options.x = texts_of("x");
  options.y = texts_of("y");
  options.drop = texts_of("drop").value_or(std::vector<std::string>{});
  options.one_hot = texts_of("one_hot").value_or(std::vector<std::string>{});
  return options;
}

// Nothing if the training data is gone, as it may be when a model predicts.
std::optional<KnownTable> table_of_train(const Options& train) {
  TextFiles files;
  try {
    files = reference_of(train);
    if (files.empty()) files = open_text_files(train.get<Paths>("path"));
  } catch (const UserError&) {
    return std::nullopt;
  }
  try {
    return learn_table(files, csv_options(train));
  } catch (const UserError& error) {
    throw UserError("data.train, by which it is read: " + std::string(error.what()));
  }
}

// Whether keys that choose the input columns differ from those of the training data.
bool says_itself(const CsvOptions& csv, const CsvOptions& train) {
  return (csv.x && csv.x != train.x) || (!csv.drop.empty() && csv.drop != train.drop);
}

std::unique_ptr<Source> open_as(const Options& options, const Reading& reading) {
  const TextFiles files = open_text_files(options.get<Paths>("path"));
  const TextFiles reference = reference_of(options);
  const CsvOptions csv = csv_options(options);
  if (reading.learned != nullptr) {
    return open_csv_as(files, reference, csv, known_table_in(reading), column_keys(*reading.keys),
                       reading.needs_target);
  }
  if (reading.train != nullptr && reference.empty()) {
    const CsvOptions train = csv_options(*reading.train);
    const auto known = says_itself(csv, train) ? std::nullopt : table_of_train(*reading.train);
    if (known) return open_csv_as(files, {}, csv, *known, train, false);
  }
  return open_csv(files, reference, csv, reading.needs_target);
}

std::unique_ptr<Source> open_with(const Options& options) { return open_as(options, {}); }

}  // namespace
}  // namespace decent::csv

namespace decent {

DataFormat csv_format() {
  return {.name = "csv", .keys = csv::keys(), .open = csv::open_with, .open_as = csv::open_as};
}

}  // namespace decent
