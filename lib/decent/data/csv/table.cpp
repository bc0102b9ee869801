#include "decent/data/csv/table.h"

#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/csv/numbers.h"

namespace decent::csv {
namespace {

constexpr std::size_t kShownClasses = 8;

class Scan {
 public:
  Scan(const Layout& layout, const Filling& filling, const Learned* known, Survey* survey)
      : layout_(layout), filling_(filling), known_(known), survey_(survey) {}

  void row(CellReader& reader) {
    for (std::size_t i = 0; i < layout_.columns; ++i) {
      if (!reader.more()) fail_ragged(reader, i);
      cell(reader, i);
    }
    if (!reader.more()) return;
    reader.finish_row();
    fail_ragged(reader, reader.columns());
  }

  std::int64_t filled() const { return filled_; }

 private:
  void cell(CellReader& reader, std::size_t column) {
    const Role& role = layout_.roles[column];
    if (role.field >= 0) return plain_number(reader, column, reader.take(), "");
    if (role.y < 0 && !role.one_hot && role.x >= 0) {  // most columns of most tables
      float value = 0;
      if (reader.take_number(value)) {
        if (survey_ != nullptr) survey_->number(static_cast<std::size_t>(role.x), value);
        return;
      }
    }
    const Cell cell = reader.take();
    if (role.x >= 0) input(reader, column, cell);
    if (role.y >= 0) target(reader, column, cell);
  }

  void input(const CellReader& reader, std::size_t column, const Cell& cell) {
    const Role& role = layout_.roles[column];
    const auto x = static_cast<std::size_t>(role.x);
    if (role.one_hot) return category(reader, column, word_in(cell));
    const Number number = number_in(cell.text, layout_.format.decimal);
    if (number.kind == Number::Kind::missing) return missing(reader, column, cell.text);
    if (number.kind == Number::Kind::other) {
      reader.fail(layout_.column(column) + ": expected a number, got " + in_quotes(cell.text) +
                  " (one_hot is for columns of words, drop for those that are no inputs)" +
                  layout_.advice_on_header(reader) + advice_on_comments(reader));
    }
    if (number.kind == Number::Kind::foreign) {
      reader.fail(layout_.column(column) + ": expected a number, got " + in_quotes(cell.text) +
                  advice_on_number(cell.text, layout_.format.decimal));
    }
    check_size(reader, column, number, cell);
    if (survey_ != nullptr) survey_->number(x, number.value);
  }

  void check_size(const CellReader& reader, std::size_t column, const Number& number,
                  const Cell& cell) const {
    if (number.kind == Number::Kind::too_large) {
      reader.fail(layout_.column(column) + ": expected a number that fits into float32, got " +
                  in_quotes(cell.text));
    }
  }

  void missing(const CellReader& reader, std::size_t column, std::string_view text) {
    ++filled_;
    if (filling_.any()) return;
    reader.fail(layout_.column(column) + ": expected a number, got " + in_quotes(text) +
                "; `missing: mean` or a number fills such cells");
  }

  void category(const CellReader& reader, std::size_t column, std::string_view word) {
    const auto x = static_cast<std::size_t>(layout_.roles[column].x);
    if (word.empty()) {
      ++filled_;
      if (!filling_.any()) {
        reader.fail(layout_.column(column) +
                    ": expected a word, got ''; with `missing: 0` such cells are zeros");
      }
    } else if (!is_utf8(word)) {
      reader.fail_encoding(layout_.column(column), word);
    } else if (known_ != nullptr) {
      check_known(reader, column, word, known_->categories[x], "categories");
    } else {
      survey_->word(x, word);
    }
  }

  void target(const CellReader& reader, std::size_t column, const Cell& cell) {
    if (known_ == nullptr && layout_.y.size() == 1)
      return survey_->target(reader, layout_.column(column), cell);
    if (known_ != nullptr && known_->target == Target::words && !is_utf8(cell.text))
      reader.fail_encoding(layout_.column(column), cell.text);
    if (known_ != nullptr && known_->target == Target::words)
      return check_known(reader, column, word_in(cell), known_->classes, "classes");
    if (known_ != nullptr && known_->target == Target::integers) {
      if (!integer_in(cell.text)) {
        reader.fail(layout_.column(column) + ": expected an integer, the number of a class, got " +
                    in_quotes(cell.text));
      }
      return;
    }
    plain_number(reader, column, cell, "; the target is missing");
  }

  void plain_number(const CellReader& reader, std::size_t column, const Cell& cell,
                    const char* missing_text) const {
    const Number number = number_in(cell.text, layout_.format.decimal);
    check_size(reader, column, number, cell);
    if (number.kind != Number::Kind::number) {
      reader.fail(layout_.column(column) + ": expected a number, got " + in_quotes(cell.text) +
                  advice_on_number(cell.text, layout_.format.decimal) +
                  layout_.advice_on_header(reader) +
                  (number.kind == Number::Kind::missing ? missing_text : ""));
    }
  }

  void check_known(const CellReader& reader, std::size_t column, std::string_view word,
                   const std::vector<std::string>& sorted, const char* what) const {
    if (place_of(word, sorted)) return;
    std::vector<std::string> shown;
    for (const std::string& each : sorted) shown.push_back(in_quotes(each));
    const auto nearest = nearest_name(word, sorted);
    reader.fail(layout_.column(column) + ": expected one of the " + what + " of " + known_->from +
                ", " + some_of(shown, kShownClasses) + ", got " + in_quotes(word) +
                (nearest ? "; did you mean " + in_quotes(*nearest) + "?" : ""));
  }

  [[noreturn]] void fail_ragged(const CellReader& reader, std::size_t cells) const {
    reader.fail("expected " + counted(static_cast<std::int64_t>(layout_.columns), "cell") +
                ", as in line " + std::to_string(layout_.first_line) + ", got " +
                std::to_string(cells) + " with the separator " +
                separator_text(layout_.format.separator) + advice_on_comments(reader) +
                advice_on_decimals(cells));
  }

  // If numbers with a decimal comma are separated by commas, nearly every cell is read as two.
  std::string advice_on_decimals(std::size_t cells) const {
    const bool doubled = layout_.columns > 2 && cells + 1 >= 2 * layout_.columns;
    if (layout_.format.separator != ',' || !doubled) return "";
    return "; where commas are decimal marks, too, the cells cannot be told apart: put such "
           "numbers "
           "in quotes and say `decimal: \",\"`, or separate the cells by semicolons";
  }

  std::string advice_on_comments(const CellReader& reader) const {
    const std::string advice = layout_.advice_on_comment(reader.first_character());
    return advice.empty() ? layout_.advice_on_comment(layout_.first_character) : advice;
  }

  const Layout& layout_;
  const Filling& filling_;
  const Learned* known_;
  Survey* survey_;
  std::int64_t filled_ = 0;
};

}  // namespace

Table scan(std::shared_ptr<const TextFile> file, Layout layout, const Filling& filling,
           const Learned* known, Survey* survey) {
  RowIndex rows(std::move(file), layout.format, layout.begin, layout.line);
  Scan scanned(layout, filling, known, survey);
  rows.scan([&](CellReader& reader) { scanned.row(reader); });
  if (rows.size() == 0) throw UserError("'" + rows.file().name() + "': it has no rows of data");
  return {.layout = std::move(layout), .rows = std::move(rows), .filled = scanned.filled()};
}

}  // namespace decent::csv
