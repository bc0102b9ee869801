#include "decent/data/csv/survey.h"

#include <algorithm>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/csv/numbers.h"
#include "decent/data/learned.h"

namespace decent::csv {
namespace {

std::string too_many(const std::string& column) {
  return column + " has more than " + std::to_string(Words::kMaxWords) + " different words";
}

}  // namespace

std::vector<std::string> Words::sorted() const {
  std::vector<std::string> all(words_.begin(), words_.end());
  std::sort(all.begin(), all.end());
  return all;
}

Survey::Survey(const Layout& layout, std::string y_type)
    : layout_(layout),
      y_type_(std::move(y_type)),
      sums_(layout.x.size()),
      counts_(layout.x.size()),
      categories_(layout.x.size()) {}

void Survey::see(Seen& seen, const CellReader& row, const std::string& column,
                 std::string_view text) const {
  if (seen.any()) return;
  seen = {.where = row.where() + column,
          .text = in_quotes(text),
          .first_row = layout_.is_guessed_row(row)};
}

void Survey::target(const CellReader& row, const std::string& column, const Cell& cell) {
  const std::string_view word = word_in(cell);
  if (word.empty()) row.fail(column + ": the target is missing");
  if (!is_utf8(word)) row.fail_encoding(column, word);
  const char decimal = layout_.format.decimal;
  const Number::Kind kind = number_in(word, decimal).kind;
  if (is_missing_label(word)) see(marker_, row, column, word);
  if (integer_in(word)) {
    see(integer_, row, column, word);
  } else if (kind == Number::Kind::number) {
    see(fraction_, row, column, word);
  } else if (y_type_ == "number" || (y_type_ == "auto" && kind == Number::Kind::foreign)) {
    row.fail(column + ": expected a number, got " + in_quotes(cell.text) +
             advice_on_number(word, decimal) + layout_.advice_on_header(row) +
             (y_type_ == "auto" ? "; `y_type: class` takes it for a word" : ""));
  } else {
    see(word_, row, column, word);
    ++words_;
  }
  // A class is a word or an integer.
  if (!fraction_.any()) classes_.add(word);
}

Learned Survey::learned(const std::string& file, bool means) const {
  Learned learned;
  for (std::size_t i = 0; i < layout_.x.size(); ++i) {
    const std::size_t column = layout_.x[i];
    const bool one_hot = layout_.roles[column].one_hot;
    if (one_hot && categories_[i].too_many())
      throw UserError("'" + file + "': one_hot: " + too_many(layout_.column(column)));
    if (means && !one_hot && counts_[i] == 0)
      throw UserError("'" + file + "': missing: " + layout_.column(column) +
                      " has no number, and so no mean");
    learned.categories.push_back(one_hot ? categories_[i].sorted() : std::vector<std::string>{});
    learned.means.push_back(
        counts_[i] == 0 ? 0 : static_cast<float>(sums_[i] / static_cast<double>(counts_[i])));
  }
  learn_target(learned);
  return learned;
}

// A word above numbers is the column's name, in a header whose other names are numbers.
void Survey::check_first_row() const {
  if (!word_.first_row || words_ > 1 || !(integer_.any() || fraction_.any())) return;
  throw UserError(word_.where + ": expected a number, as in other rows, got " + word_.text +
                  kAdviceOnHeader);
}

void Survey::learn_target(Learned& learned) const {
  if (layout_.y.empty()) return;
  check_first_row();
  const bool is_class = y_type_ == "class";
  if (marker_.any() && integer_.any()) {
    throw UserError(marker_.where + ": expected a class, an integer as in other rows, got " +
                    marker_.text + ", which stands for a missing value");
  }
  if (fraction_.any() && (word_.any() || is_class)) {
    const Seen& wrong = is_class ? fraction_ : word_;
    throw UserError(wrong.where + ": expected " +
                    (is_class ? "a class, an integer or a word," : "a number, as in other rows,") +
                    " got " + wrong.text +
                    (is_class ? "; whole numbers are written without a point, in pandas by "
                                "table[\"y\"].astype(int)"
                              : ""));
  }
  if (word_.any() && integer_.any() && !is_class) {
    throw UserError(word_.where + ": expected a number, as in other rows, got " + word_.text +
                    "; where both are classes, say y_type: class");
  }
  if (!word_.any()) {
    learned.target = is_class ? Target::integers : Target::numbers;
    return;
  }
  if (classes_.too_many()) {
    throw UserError(word_.where + ": expected a number, got " + word_.text + "; as a class, " +
                    too_many(layout_.column(layout_.y[0])));
  }
  learned.target = Target::words;
  learned.classes = classes_.sorted();
}

}  // namespace decent::csv
