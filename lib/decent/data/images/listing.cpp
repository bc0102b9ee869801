#include "decent/data/images/listing.h"

#include <algorithm>
#include <array>
#include <utility>

#include "decent/core/csv_cell.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/registry.h"
#include "decent/core/text.h"
#include "decent/data/csv/numbers.h"
#include "decent/data/learned.h"

namespace decent {
namespace {

struct Row {
  std::string file, label;
  std::vector<std::string> further;
  std::size_t line;
};

enum class Labels { needed, optional };

// Rows of two fields, or of one if labels are optional, and of further ones if columns are named
// (the key `fields`). A quoted field may contain commas, ends of
// lines, and quotes written twice.
class Rows {
 public:
  Rows(std::string_view text, const std::filesystem::path& path, Labels labels,
       const std::vector<std::string>& fields)
      : text_(text), path_(path), labels_(labels), fields_(fields) {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";  // that some programs put in front of UTF-8
    if (text_.starts_with(kMark)) text_.remove_prefix(kMark.size());
  }

  /// nullopt at the end. Skips empty lines.
  std::optional<Row> next() {
    while (at_end_of_line() && !text_.empty()) end_line();
    if (text_.empty()) return std::nullopt;
    Row row{.file = {}, .label = {}, .further = {}, .line = line_};
    row.file = without_mark(field());
    const bool has_label = text_.starts_with(',');
    if (has_label) {
      text_.remove_prefix(1);
      row.label = without_mark(field());
    }
    while (text_.starts_with(',')) {
      if (fields_.empty()) {
        wrong(row.line,
              "more than two fields; quote those with commas, or name columns of numbers with "
              "`fields`");
      }
      text_.remove_prefix(1);
      row.further.emplace_back(without_mark(field()));
    }
    if (!is_utf8(row.label)) {
      wrong(row.line, "the label " + in_quotes(row.label) +
                          " is not UTF-8 (Latin-1 or Windows-1252?); convert the file: iconv -f "
                          "WINDOWS-1252 -t UTF-8");
    }
    if (row.file.empty()) wrong(row.line, "the name of the file is empty");
    if (labels_ == Labels::needed) {
      if (!has_label) wrong(row.line, "expected two fields, file and label");
      if (row.label.empty()) wrong(row.line, "the label is empty");
    }
    end_line();
    return row;
  }

  const std::filesystem::path& path() const { return path_; }
  const std::vector<std::string>& fields() const { return fields_; }

  [[noreturn]] void wrong(std::size_t line, const std::string& problem) const {
    throw UserError("'" + path_.string() + "', line " + std::to_string(line) + ": " + problem);
  }
  /// About a column that the key `fields` names.
  [[noreturn]] void wrong_field(const std::string& name, const std::string& problem) const {
    throw UserError("'" + path_.string() + "': fields names column " + in_quotes(name) + ", " +
                    problem);
  }

 private:
  bool at_end_of_line() const {
    return text_.empty() || text_.starts_with('\n') || text_.starts_with("\r\n");
  }

  void end_line() {
    if (text_.empty()) return;
    text_.remove_prefix(text_[0] == '\r' ? 2 : 1);
    ++line_;
  }

  std::string field() {
    if (text_.starts_with('"')) return quoted();
    std::size_t length = 0;
    while (length < text_.size() && text_[length] != ',' && text_[length] != '\n' &&
           text_.substr(length, 2) != "\r\n") {
      ++length;
    }
    const std::string_view plain = text_.substr(0, length);
    if (plain.find('\0') != std::string_view::npos) wrong(line_, "a zero byte: not a text");
    text_.remove_prefix(length);
    return std::string(trimmed(plain));
  }

  std::string quoted() {
    const std::size_t begin = line_;
    std::string value;
    text_.remove_prefix(1);
    for (;;) {
      if (text_.empty()) wrong(begin, "a quote that does not end");
      const char c = text_[0];
      text_.remove_prefix(1);
      if (c == '"' && !text_.starts_with('"')) break;
      if (c == '"') text_.remove_prefix(1);
      if (c == '\0') wrong(line_, "a zero byte: not a text");
      line_ += c == '\n';
      value += c;
    }
    if (!at_end_of_line() && text_[0] != ',') wrong(line_, "text behind a quoted field");
    return value;
  }

  std::string_view text_;
  const std::filesystem::path& path_;
  Labels labels_;
  const std::vector<std::string>& fields_;
  std::size_t line_ = 1;
};

// Whether a row has names of columns: its label is no number, and its file neither has an image's
// name nor exists.
bool is_header(const Row& row, const std::filesystem::path& folder) {
  if (is_image_name(row.file) || whole_number(row.label)) return false;
  std::error_code none;
  return !std::filesystem::exists(folder / row.file, none);
}

constexpr std::int64_t kOwnColumns = 2;  // file and label

// Which of the further columns `name` means, by the header's name or by the column's number.
std::size_t further_column(const Rows& list, const Row& first, bool is_names,
                           const std::string& name) {
  const std::vector<std::string>& cells = first.further;
  const auto called = is_names ? std::count(cells.begin(), cells.end(), name) : 0;
  if (called > 1) list.wrong_field(name, "which two columns are called; expected its number");
  if (called == 1) {
    return static_cast<std::size_t>(std::find(cells.begin(), cells.end(), name) - cells.begin());
  }
  const std::int64_t at = whole_number(name).value_or(0) - kOwnColumns;
  if (at >= 0 && at < std::ssize(cells)) return static_cast<std::size_t>(at);
  list.wrong_field(name, cells.empty() ? "but there are only file and label"
                         : is_names
                             ? "which is none of " + join(cells)
                             : "expected a number from 2 to " + std::to_string(cells.size() + 1) +
                                   " (its first row is no header)");
}

float number_of(const Rows& list, const Row& row, std::size_t at, const std::string& column) {
  try {
    return csv::needed_number(row.further[at]);
  } catch (const UserError& error) {
    list.wrong(row.line, "column " + in_quotes(column) + ": " + error.what());
  }
}

// The columns that the key `fields` names.
std::vector<NumberColumn> columns_of(const Rows& list, const Row& first, bool is_names,
                                     const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    if (row.further.size() == first.further.size()) continue;
    list.wrong(row.line, "expected " + counted(std::ssize(first.further) + kOwnColumns, "field") +
                             ", as in line " + std::to_string(first.line));
  }
  std::vector<NumberColumn> columns;
  for (const std::string& field : list.fields()) {
    const std::size_t at = further_column(list, first, is_names, field);
    NumberColumn column{.name = is_names
                                    ? first.further[at]
                                    : std::to_string(kOwnColumns + static_cast<std::int64_t>(at)),
                        .values = {}};
    if (column.name == "x" || column.name == "y")
      list.wrong_field(field, "but x and y are the image and its class");
    if (find_named(columns, column.name) != nullptr) list.wrong_field(field, "twice");
    for (const Row& row : rows) column.values.push_back(number_of(list, row, at, column.name));
    columns.push_back(std::move(column));
  }
  return columns;
}

struct Content {
  std::vector<Row> rows;  // without the header
  std::vector<NumberColumn> columns;
};

Content content_of(Rows& list) {
  Content content;
  std::vector<Row>& rows = content.rows;
  while (std::optional<Row> row = list.next()) rows.push_back(std::move(*row));
  const std::optional<Row> first = rows.empty() ? std::nullopt : std::optional(rows.front());
  const bool is_names = first && is_header(*first, folder_of(list.path()));
  if (is_names) rows.erase(rows.begin());
  if (rows.empty())
    throw UserError("'" + list.path().string() + "' lists no images: expected lines of file,label");
  content.columns = columns_of(list, *first, is_names, rows);
  return content;
}

}  // namespace

bool ends_in_any(std::string_view name, std::span<const std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) {
    return name.size() > ending.size() &&
           std::equal(
               ending.begin(), ending.end(), name.end() - std::ssize(ending),
               [](char wanted, char c) { return wanted == (c >= 'A' && c <= 'Z' ? c | 0x20 : c); });
  });
}

bool is_image_name(std::string_view name) {
  constexpr std::array<std::string_view, 8> kRead = {".jpg", ".jpeg", ".jpe",  ".jfif",
                                                     ".jif", ".png",  ".apng", ".webp"};
  return ends_in_any(name, kRead);
}

void ImageListing::add(std::string_view file, std::int64_t label) {
  names_ += file;
  ends_.push_back(names_.size());
  labels_.push_back(label);
}

std::string_view ImageListing::name(std::int64_t index) const {
  const auto i = static_cast<std::size_t>(index);
  const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
  return std::string_view(names_).substr(begin, ends_[i] - begin);
}

std::filesystem::path ImageListing::file(std::int64_t index) const { return folder_ / name(index); }

ImageListing parse_image_list(std::string_view text, const std::filesystem::path& path,
                              const ClassNumbers& numbers, const std::vector<std::string>& fields) {
  Rows list(text, path, Labels::needed, fields);
  Content content = content_of(list);
  const std::vector<Row>& rows = content.rows;
  ImageListing listing(folder_of(path));
  std::vector<std::string> texts;
  for (const Row& row : rows) texts.push_back(row.label);
  NumberedLabels labels =
      numbered_labels(texts, numbers, [&](std::size_t index, const std::string& problem) {
        list.wrong(rows[index].line, problem);
      });
  for (std::size_t i = 0; i < rows.size(); ++i) listing.add(rows[i].file, labels.numbers[i]);
  listing.set_classes(std::move(labels.classes));
  listing.set_columns(std::move(content.columns));
  return listing;
}

ImageListing read_image_list(const std::filesystem::path& path, const ClassNumbers& numbers,
                             const std::vector<std::string>& fields) {
  return parse_image_list(read_text(path), path, numbers, fields);
}

ImageListing read_image_names(const std::filesystem::path& path,
                              const std::vector<std::string>& fields) {
  const std::string text = read_text(path);
  Rows list(text, path, Labels::optional, fields);
  Content content = content_of(list);
  ImageListing listing(folder_of(path));
  for (const Row& row : content.rows) listing.add(row.file, 0);
  listing.set_columns(std::move(content.columns));
  return listing;
}

}  // namespace decent
