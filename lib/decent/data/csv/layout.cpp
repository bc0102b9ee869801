#include "decent/data/csv/layout.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/csv/numbers.h"

namespace decent::csv {
namespace {

constexpr std::size_t kShownNames = 12;

struct FirstRow {
  std::size_t begin = 0;  // where the rows begin
  std::vector<std::string> cells;
  std::size_t end = 0;    // where the next row begins
  std::int64_t line = 1;  // the line number of that row
  std::int64_t own_line = 1;
  char first_character = ' ';
};

bool separates(char c) {
  const bool in_numbers = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                          (c >= 'A' && c <= 'Z') || c == '+' || c == '-' || c == '.';
  return !in_numbers && c != '"' && c != '\n' && c != '\r';
}

// A line `sep=;` at the beginning, which tells spreadsheets the separator.
struct SeparatorLine {
  char separator = ',';
  std::size_t end = 0;  // where the next line begins
};

std::optional<SeparatorLine> separator_line(std::string_view text) {
  constexpr std::string_view kLongest = "\"sep=;\"\r\n";
  const std::size_t end = text.substr(0, kLongest.size()).find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  std::string_view line = text.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with('"') && line.ends_with('"') && line.size() > 2)
    line = line.substr(1, line.size() - 2);
  const bool names = line.size() == 5 && (line.starts_with("sep=") || line.starts_with("SEP="));
  if (!names || !separates(line[4])) return std::nullopt;
  return SeparatorLine{.separator = line[4], .end = end + 1};
}

// A reader at the first row, after the line that names the separator, if there is one.
struct Rows {
  std::size_t begin = 0;
  CellReader reader;
};

Rows rows_of(const TextFile& file, CellFormat format) {
  const auto line = separator_line(file.text());
  const std::size_t begin = line ? line->end : 0;
  Rows rows{begin, CellReader(file.text().substr(begin), format, file.name(), line ? 2 : 1)};
  if (!rows.reader.next_row()) throw UserError("'" + file.name() + "': it has no rows");
  return rows;
}

FirstRow read_first_row(const TextFile& file, CellFormat format) {
  Rows rows = rows_of(file, format);
  CellReader& reader = rows.reader;
  FirstRow row;
  row.begin = rows.begin;
  row.own_line = reader.line();
  row.first_character = reader.first_character();
  while (reader.more()) row.cells.emplace_back(word_in(reader.take()));
  for (std::size_t i = 0; i < row.cells.size(); ++i)
    if (!is_utf8(row.cells[i])) reader.fail_encoding("column " + std::to_string(i), row.cells[i]);
  const bool another = reader.next_row();
  row.end = another ? rows.begin + reader.offset() : file.text().size();
  row.line = reader.line();
  return row;
}

// Whether all cells of a line are numbers, and some of them have a decimal comma.
bool has_decimal_commas(std::string_view line, char separator) {
  bool any = false;
  while (true) {
    const std::size_t end = std::min(line.find(separator), line.size());
    const Number::Kind kind = number_in(line.substr(0, end), '.').kind;
    if (kind == Number::Kind::other) return false;
    any = any || kind == Number::Kind::foreign;
    if (end == line.size()) return any;
    line.remove_prefix(end + 1);
  }
}

// The separator that is most frequent in the first row. If the comma is the decimal mark, it is
// taken only if there is no other: then numbers are in quotes.
char usual_separator(const TextFile& file, const CellFormat& format) {
  constexpr std::array<char, 4> kUsual = {',', '\t', ';', '|'};
  const Rows rows = rows_of(file, format);
  const std::string_view text = file.text().substr(rows.begin + rows.reader.offset(), kMostLine);
  std::array<std::size_t, kUsual.size()> counts{};
  bool quoted = false;
  std::size_t end = 0;
  for (; end < text.size() && (text[end] != '\n' || quoted); ++end) {
    if (text[end] == '"') quoted = !quoted;
    for (std::size_t i = 0; i < kUsual.size(); ++i) counts[i] += text[end] == kUsual[i] && !quoted;
  }
  std::string_view line = text.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  for (std::size_t i = 1; i < kUsual.size(); ++i)
    if (counts[i] > 0 && has_decimal_commas(line, kUsual[i])) return kUsual[i];
  const auto most = std::max_element(counts.begin() + 1, counts.end());
  const bool comma = format.decimal == ',' ? *most == 0 : counts[0] >= *most;
  return comma ? ',' : kUsual[static_cast<std::size_t>(most - counts.begin())];
}

char separator_of(const TextFile& file, const std::string& separator, const CellFormat& format) {
  if (separator == "tab") return '\t';
  if (separator.size() == 1 && separates(separator[0])) return separator[0];
  if (separator != "auto") {
    throw UserError(
        "separator: expected auto, tab or a character that neither numbers nor quotes have, got " +
        in_quotes(separator));
  }
  if (const auto line = separator_line(file.text())) return line->separator;
  if (file.name().ends_with(".tsv") || file.name().ends_with(".tsv.gz")) return '\t';
  return usual_separator(file, format);
}

char comment_of(const std::string& comment) {
  if (comment.size() == 1 && separates(comment[0])) return comment[0];
  throw UserError(
      "comment: expected a character that neither numbers nor quotes have, as '#', got " +
      in_quotes(comment));
}

// Finds the columns that keys name.
class Finder {
 public:
  Finder(const std::string& file, const Layout& layout) : file_(file), layout_(layout) {}

  // Refuses a column that is named twice.
  std::vector<std::size_t> find_all(const std::string& key,
                                    const std::vector<std::string>& wanted) const {
    std::vector<std::size_t> found;
    std::vector<bool> is_found(layout_.columns);
    for (const std::string& name : wanted) {
      for (const std::size_t column : find(key, name)) {
        if (is_found[column]) {
          throw UserError("'" + file_ + "': " + key + " names " + layout_.column(column) +
                          " twice");
        }
        is_found[column] = true;
        found.push_back(column);
      }
    }
    return found;
  }

 private:
  // Takes `name` as a column's name, else as a pattern, else as a number.
  std::vector<std::size_t> find(const std::string& key, const std::string& name) const {
    std::vector<std::size_t> found =
        matching([&](const std::string& each) { return each == name; });
    if (found.size() > 1) {
      throw UserError("'" + file_ + "': " +
                      counted(static_cast<std::int64_t>(found.size()), "column") + " are called " +
                      in_quotes(name) + "; " + key + " may name them by their numbers, from 0");
    }
    if (found.empty() && name.find_first_of("*?") != std::string::npos)
      found = matching([&](const std::string& each) { return glob_matches(name, each); });
    if (found.empty()) {
      if (const auto number = numbered(name)) found.push_back(*number);
    }
    if (found.empty()) throw_unknown(key, name);
    return found;
  }

  template <class Matches>
  std::vector<std::size_t> matching(const Matches& matches) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < layout_.names.size(); ++i) {
      if (matches(layout_.names[i])) found.push_back(i);
    }
    return found;
  }

  // A column's number, counted from 0, or from the end: -1 is the last.
  std::optional<std::size_t> numbered(const std::string& name) const {
    auto number = integer_in(name);
    const auto columns = static_cast<std::int64_t>(layout_.columns);
    if (!number || *number < -columns || *number >= columns) return std::nullopt;
    return static_cast<std::size_t>(*number < 0 ? *number + columns : *number);
  }

  [[noreturn]] void throw_unknown(const std::string& key, const std::string& name) const {
    std::string text = "'" + file_ + "': " + key + " names a column " + in_quotes(name) +
                       ", which it does not have; expected a number from 0 to " +
                       std::to_string(layout_.columns - 1);
    if (layout_.names.empty()) throw UserError(text + " (its first row is no header)");
    std::vector<std::string> shown;
    for (const std::string& each : layout_.names) shown.push_back(in_quotes(each));
    text += " or a name of " + some_of(shown, kShownNames);
    if (const auto nearest = nearest_name(name, layout_.names))
      text += "; did you mean " + in_quotes(*nearest) + "?";
    throw UserError(text);
  }

  const std::string& file_;
  const Layout& layout_;
};

std::vector<std::size_t> all_but(const Layout& layout, const std::vector<std::size_t>& dropped) {
  std::vector<bool> is_dropped(layout.columns);
  for (const std::size_t column : dropped) is_dropped[column] = true;
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < layout.columns; ++i) {
    const bool unnamed = !layout.names.empty() && layout.names[i].empty();
    if (!unnamed && !is_dropped[i]) columns.push_back(i);
  }
  return columns;
}

void find_columns(const TextFile& file, const CsvOptions& options, Layout& layout) {
  const Finder finder(file.name(), layout);
  if (!options.y) {
    layout.y = {layout.columns - 1};
  } else if (*options.y != std::vector<std::string>{"none"}) {
    layout.y = finder.find_all("y", *options.y);
  }
  if (options.x) {
    layout.x = finder.find_all("x", *options.x);
  } else {
    std::vector<std::size_t> others = finder.find_all("drop", options.drop);
    for (const std::size_t column : finder.find_all("fields", options.fields))
      others.push_back(column);
    others.insert(others.end(), layout.y.begin(), layout.y.end());
    layout.x = all_but(layout, others);
  }
  if (layout.x.empty()) {
    throw UserError("'" + file.name() + "': no column is left for x; it has " +
                    counted(static_cast<std::int64_t>(layout.columns), "column") +
                    " with the separator " + separator_text(layout.format.separator) +
                    (layout.columns == 1 ? "; where another character stands between the cells, "
                                           "`separator` names it"
                                         : "") +
                    layout.advice_on_comment(layout.first_character));
  }
}

void find_roles(const TextFile& file, const CsvOptions& options, Layout& layout) {
  layout.roles.resize(layout.columns);
  for (std::size_t i = 0; i < layout.x.size(); ++i)
    layout.roles[layout.x[i]].x = static_cast<int>(i);
  for (std::size_t i = 0; i < layout.y.size(); ++i)
    layout.roles[layout.y[i]].y = static_cast<int>(i);
  const Finder finder(file.name(), layout);
  for (const std::size_t column : finder.find_all("one_hot", options.one_hot)) {
    if (layout.roles[column].x < 0) {
      throw UserError("'" + file.name() + "': one_hot names " + layout.column(column) +
                      ", which is not among x");
    }
    layout.roles[column].one_hot = true;
  }
  add_fields(file, options.fields, layout);
}

}  // namespace

void add_fields(const TextFile& file, const std::vector<std::string>& wanted, Layout& layout) {
  layout.fields = columns_named(file, layout, "fields", wanted);
  for (std::size_t i = 0; i < layout.fields.size(); ++i) {
    Role& role = layout.roles[layout.fields[i]];
    const std::string name = layout.field_names()[i];
    if (role.used() || name == "x" || name == "y") {
      throw UserError("'" + file.name() + "': fields names " + layout.column(layout.fields[i]) +
                      (role.used() ? ", which is part of " + std::string(role.x >= 0 ? "x" : "y") +
                                         "; expected a column of its own"
                                   : ", but x and y are the input and the target"));
    }
    role.field = static_cast<int>(i);
  }
}

Layout columns_of(const TextFile& file, const CsvOptions& options) {
  CsvOptions all;
  all.y = {"none"};
  all.header = options.header;
  all.separator = options.separator;
  all.decimal = options.decimal;
  all.comment = options.comment;
  return read_layout(file, all);
}

// Names are words, and the first row of a table without a header has a number.
bool looks_like_names(const std::vector<std::string>& cells, char decimal) {
  bool any = false;
  for (const std::string& cell : cells) {
    const Number::Kind kind = number_in(cell, decimal).kind;
    if (kind != Number::Kind::other && kind != Number::Kind::missing) return false;
    any = any || kind == Number::Kind::other;
  }
  return any;
}

bool has_column(const Layout& layout, const std::string& name) {
  const auto number = integer_in(name);
  const auto columns = static_cast<std::int64_t>(layout.columns);
  return (number && *number >= -columns && *number < columns) ||
         std::any_of(layout.names.begin(), layout.names.end(),
                     [&](const std::string& each) { return glob_matches(name, each); });
}

std::vector<std::size_t> columns_named(const TextFile& file, const Layout& layout,
                                       const std::string& key,
                                       const std::vector<std::string>& wanted) {
  return Finder(file.name(), layout).find_all(key, wanted);
}

std::vector<std::string> first_row(const TextFile& file, CellFormat format) {
  return read_first_row(file, format).cells;
}

bool has_column(const TextFile& file, CellFormat format, const CsvOptions& options,
                const std::string& name) {
  CsvOptions all = options;
  all.y = {"none"};
  return has_column(read_layout(file, format, all), name);
}

CsvOptions without_target(const TextFile& file, const CsvOptions& options) {
  CsvOptions inputs = options;
  inputs.y = {"none"};
  if (options.x) return inputs;
  const Layout own = columns_of(file, options);
  for (const std::string& name : options.y.value_or(std::vector<std::string>{"-1"})) {
    const bool dropped =
        std::find(inputs.drop.begin(), inputs.drop.end(), name) != inputs.drop.end();
    if (!dropped && name != "none" && has_column(own, name)) inputs.drop.push_back(name);
  }
  return inputs;
}

std::string Layout::column(std::size_t number) const {
  if (number < names.size() && !names[number].empty()) return "column " + in_quotes(names[number]);
  return "column " + std::to_string(number);
}

std::vector<std::string> Layout::field_names() const {
  std::vector<std::string> all;
  for (const std::size_t i : fields)
    all.push_back(names.empty() || names[i].empty() ? std::to_string(i) : names[i]);
  return all;
}

std::string Layout::advice_on_header(const CellReader& row) const {
  return is_guessed_row(row) ? kAdviceOnHeader : "";
}

std::string Layout::advice_on_comment(char first) const {
  constexpr std::string_view kUsual = "#%!;";
  if (format.comment != '\0' || kUsual.find(first) == std::string_view::npos) return "";
  return std::string("; where a line that begins with '") + first +
         "' is a comment, say `comment: \"" + first + "\"`";
}

std::string Layout::text() const {
  std::string text;
  for (const std::size_t i : x) text += column(i) + (roles[i].one_hot ? " one-hot, " : ", ");
  text += "->";
  for (const std::size_t i : y) text += " " + column(i);
  for (const std::size_t i : fields) text += ", field " + column(i);
  return text;
}

std::string separator_text(char separator) {
  return separator == '\t' ? "tab" : in_quotes(std::string(1, separator));
}

CellFormat cell_format(const TextFile& file, const CsvOptions& options) {
  CellFormat format{.decimal = options.decimal[0]};
  if (options.comment) format.comment = comment_of(*options.comment);
  format.separator = separator_of(file, options.separator, format);
  if (format.comment == format.separator) {
    throw UserError("comment: " + in_quotes(*options.comment) + " separates the cells of '" +
                    file.name() + "'; expected another character");
  }
  return format;
}

Layout read_layout(const TextFile& file, const CsvOptions& options) {
  return read_layout(file, cell_format(file, options), options);
}

Layout read_layout(const TextFile& file, CellFormat format, const CsvOptions& options) {
  Layout layout;
  layout.format = format;
  FirstRow first = read_first_row(file, format);
  layout.columns = first.cells.size();
  layout.begin = first.begin;
  layout.line = first.begin == 0 ? 1 : 2;
  layout.first_line = first.own_line;
  layout.first_character = first.first_character;
  const bool names = looks_like_names(first.cells, format.decimal);
  layout.guessed = options.header == "auto" && !names;
  if (options.header == "true" || (options.header == "auto" && names)) {
    layout.names = std::move(first.cells);
    layout.begin = first.end;
    layout.line = first.line;
  }
  find_columns(file, options, layout);
  find_roles(file, options, layout);
  return layout;
}

}  // namespace decent::csv
