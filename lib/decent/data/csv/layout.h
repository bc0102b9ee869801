#pragma once
// Which columns of a file are what. No torch.

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
      {};  // names, patterns or numbers; none: all the others
  std::optional<std::vector<std::string>> y = {};  // none: the last column; {"none"}: no target
  std::vector<std::string> drop = {};
  std::vector<std::string> one_hot = {};
  std::string header = "auto";              // true, false
  std::string separator = "auto";           // tab, a character
  std::string missing = "error";            // mean, a number
  std::string y_type = "auto";              // number, class
  std::string decimal = ".";                // or a comma
  std::optional<std::string> comment = {};  // a character
};

/// What one column of a file is used for; it may be both.
struct Role {
  int x = -1;  // which of the columns of x
  int y = -1;
  bool one_hot = false;

  bool used() const { return x >= 0 || y >= 0; }
};

struct Layout {
  CellFormat format;
  std::size_t columns = 0;
  std::vector<std::string> names;  // by column; empty without a header
  std::vector<Role> roles;         // by column
  std::vector<std::size_t> x;      // columns, in the order of x
  std::vector<std::size_t> y;
  std::size_t begin = 0;        // where the first row of data begins
  std::int64_t line = 1;        // and in which line
  std::int64_t first_line = 1;  // of the row that says how many columns there are
  char first_character = ' ';   // of that row
  bool guessed = false;         // whether that row is data because it does not look like names

  /// "column 'price'", "column 3".
  std::string column(std::size_t number) const;
  /// Whether the row that is read is the first one, which is data only by its content; the end of a
  /// message about one, else empty.
  bool is_guessed_row(const CellReader& row) const { return guessed && row.line() == first_line; }
  std::string advice_on_header(const CellReader& row) const;
  /// The end of a message about a row that begins as comments do in most files that have any.
  std::string advice_on_comment(char first) const;
  /// How the columns are called that samples are made of, to compare files.
  std::string text() const;
};

inline constexpr const char* kAdviceOnHeader =
    "; the first row is taken for data, as one of its cells is a number: where it has the names of "
    "the columns, say `header: true`";

/// Throws UserError for a file without rows, and for columns that it does not have.
Layout read_layout(const TextFile& file, const CsvOptions& options);
/// The same with a format of cells of its own, where those of `options` are not looked at.
Layout read_layout(const TextFile& file, CellFormat format, const CsvOptions& options);

/// How messages show a separator: "tab", "';'".
std::string separator_text(char separator);

/// The columns that a key's names, patterns or numbers name, in their order. Throws UserError for
/// one that the file does not have, and for one that is named twice.
std::vector<std::size_t> columns_named(const TextFile& file, const Layout& layout,
                                       const std::string& key,
                                       const std::vector<std::string>& wanted);

/// All columns of a file, whatever they are used for.
Layout columns_of(const TextFile& file, const CsvOptions& options);

/// The cells of the first row; whether they look like a header: words, and no number among them.
std::vector<std::string> first_row(const TextFile& file, CellFormat format);
bool looks_like_names(const std::vector<std::string>& cells, char decimal);

/// Whether there is a column that `name` names, as keys do.
bool has_column(const Layout& layout, const std::string& name);
bool has_column(const TextFile& file, CellFormat format, const CsvOptions& options,
                const std::string& name);

/// What samples without a target are made of: options whose y is `none` and whose inputs are x of
/// `options`, or all columns but those that y and drop name, as far as the file has them.
CsvOptions without_target(const TextFile& file, const CsvOptions& options);

/// Which columns of the training data samples are made of.
struct KnownColumns {
  std::vector<std::string> names = {};  // of all columns; empty where it has no header
  std::size_t columns = 0;              // their number
  std::vector<std::size_t> x = {};      // in the order of x
  std::vector<std::size_t> y = {};
  std::vector<std::size_t> one_hot = {};  // in ascending order
  std::string where = {};                 // who says so, for messages
};

/// The same columns in another file: by their names where both files have names, else by their
/// order, with the target among them or, where that is not needed, without it. Other columns are
/// passed over. `trained`: the keys of the training data. Throws UserError for a column that is
/// missing or there twice, and where a key of `options` differs from that of `trained` and names
/// other columns than those.
Layout layout_as(const TextFile& file, const CsvOptions& options, const KnownColumns& known,
                 const CsvOptions& trained, bool needs_target);

/// How the cells of a file are written. The separator of `options` is a character, "tab", or
/// "auto": the one that a first line as in `sep=;` names, the tab for a file whose name ends in
/// .tsv, else whichever of comma, tab, semicolon and bar the first row has most of. A comma that is
/// the decimal mark counts only where there is none of the others. Throws UserError for characters
/// that cannot be.
CellFormat cell_format(const TextFile& file, const CsvOptions& options);

}  // namespace decent::csv
