#pragma once
// What the columns of a file are used for. No torch.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decent/data/csv/cells.h"
#include "decent/data/csv/text_file.h"

namespace decent::csv {

/// The keys of the format.
struct CsvOptions {
  std::optional<std::vector<std::string>> x =
      {};  // names, patterns or numbers; none: all other columns
  std::optional<std::vector<std::string>> y = {};  // none: the last column; {"none"}: no target
  std::vector<std::string> drop = {};
  std::vector<std::string> one_hot = {};
  std::vector<std::string> fields = {};
  std::string header = "auto";              // true, false
  std::string separator = "auto";           // tab, a character
  std::string missing = "error";            // mean, a number
  std::string y_type = "auto";              // number, class
  std::string decimal = ".";                // or a comma
  std::optional<std::string> comment = {};  // a character
};

/// What one column of a file is used for; it may be part of both x and y.
struct Role {
  int x = -1;  // which of the columns of x
  int y = -1;
  int field = -1;  // which of the columns that are fields of their own
  bool one_hot = false;

  bool used() const { return x >= 0 || y >= 0 || field >= 0; }
};

struct Layout {
  CellFormat format;
  std::size_t columns = 0;
  std::vector<std::string> names;  // by column; empty without a header
  std::vector<Role> roles;         // by column
  std::vector<std::size_t> x;      // columns, in the order of x
  std::vector<std::size_t> y;
  std::vector<std::size_t> fields;
  std::size_t begin = 0;        // where the first row of data begins
  std::int64_t line = 1;        // and in which line
  std::int64_t first_line = 1;  // of the row that sets the number of columns
  char first_character = ' ';   // of that row
  bool guessed = false;         // whether that row is data because it does not look like names

  /// "column 'price'", "column 3".
  std::string column(std::size_t number) const;
  /// The names of the fields that are columns: "price", "3".
  std::vector<std::string> field_names() const;
  /// Whether `row` is the first one and counts as data only because of its content; and the end of
  /// a message about such a row, empty for others.
  bool is_guessed_row(const CellReader& row) const { return guessed && row.line() == first_line; }
  std::string advice_on_header(const CellReader& row) const;
  /// The end of a message about a row that begins with a character that usually begins comments.
  std::string advice_on_comment(char first) const;
  /// The names of the columns that samples are made of, to compare files.
  std::string text() const;
};

inline constexpr const char* kAdviceOnHeader =
    "; the first row is taken for data, as one of its cells is a number: where it has the names of "
    "the columns, say `header: true`";

/// Throws UserError for a file without rows, and for columns that it does not have.
Layout read_layout(const TextFile& file, const CsvOptions& options);
/// The same with the given format of cells; the keys of `options` about it are ignored.
Layout read_layout(const TextFile& file, CellFormat format, const CsvOptions& options);

/// How messages show a separator: "tab", "';'".
std::string separator_text(char separator);

/// The columns that a key's names, patterns or numbers mean, in that order. Throws UserError for a
/// column that the file does not have, and for a column that is named twice.
std::vector<std::size_t> columns_named(const TextFile& file, const Layout& layout,
                                       const std::string& key,
                                       const std::vector<std::string>& wanted);

/// Makes the columns that `wanted`, the key `fields`, names fields of their own. The layout has its
/// other roles. Throws UserError for a column that is part of x or y, or called so.
void add_fields(const TextFile& file, const std::vector<std::string>& wanted, Layout& layout);

/// All columns of a file, whatever they are used for.
Layout columns_of(const TextFile& file, const CsvOptions& options);

/// The cells of the first row; whether they look like a header: words, and no number among them.
std::vector<std::string> first_row(const TextFile& file, CellFormat format);
bool looks_like_names(const std::vector<std::string>& cells, char decimal);

/// Whether there is a column that `name` means in a key.
bool has_column(const Layout& layout, const std::string& name);
bool has_column(const TextFile& file, CellFormat format, const CsvOptions& options,
                const std::string& name);

/// The options for samples without a target: y is `none`, and the inputs are x of `options`, or all
/// columns except those that y and drop name, as far as the file has them.
CsvOptions without_target(const TextFile& file, const CsvOptions& options);

/// The columns of the training data that samples are made of.
struct KnownColumns {
  std::vector<std::string> names = {};  // of all columns; empty if it has no header
  std::size_t columns = 0;              // their number
  std::vector<std::size_t> x = {};      // in the order of x
  std::vector<std::size_t> y = {};
  std::vector<std::size_t> one_hot = {};  // in ascending order
  std::string where = {};                 // the source of this knowledge, for messages
};

/// The same columns in another file: found by name if both files have names, else by their order,
/// which may lack the target if it is not needed. Other columns are ignored. `trained` are the keys
/// of the training data. Throws UserError for a column that is missing or appears twice, and if a
/// key of `options` differs from that of `trained` and names other columns.
Layout layout_as(const TextFile& file, const CsvOptions& options, const KnownColumns& known,
                 const CsvOptions& trained, bool needs_target);

/// How the cells of a file are written. The separator of `options` is a character, "tab", or
/// "auto": the one that a first line like `sep=;` names, the tab for a file whose name ends in
/// .tsv, else the most frequent of comma, tab, semicolon and bar in the first row. A comma that is
/// the decimal mark counts only if there is none of the others. Throws UserError for invalid
/// characters.
CellFormat cell_format(const TextFile& file, const CsvOptions& options);

}  // namespace decent::csv
