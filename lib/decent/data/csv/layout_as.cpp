#include <algorithm>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/csv/layout.h"

namespace decent::csv {
namespace {

constexpr std::size_t kMostNames = 12;

bool is_among(std::size_t column, const std::vector<std::size_t>& columns) {
  return std::find(columns.begin(), columns.end(), column) != columns.end();
}

bool has_all_names(const std::vector<std::string>& cells, const KnownColumns& known) {
  return !known.names.empty() &&
         std::all_of(known.x.begin(), known.x.end(), [&](std::size_t column) {
           return std::find(cells.begin(), cells.end(), known.names[column]) != cells.end();
         });
}

// Finds the columns of `known` in one file.
class Matching {
 public:
  Matching(const TextFile& file, const Layout& own, const KnownColumns& known, bool needs_target)
      : file_(file), own_(own), known_(known), needs_target_(needs_target) {
    const auto named = [&](std::size_t column) { return !known.names[column].empty(); };
    by_name_ = !own.names.empty() && !known.names.empty() && own.names != known.names &&
               std::all_of(known.x.begin(), known.x.end(), named) &&
               (!needs_target || std::all_of(known.y.begin(), known.y.end(), named));
    if (!by_name_) check_number();
  }

  std::vector<std::size_t> find(const std::vector<std::size_t>& columns) const {
    std::vector<std::size_t> found;
    for (const std::size_t column : columns)
      found.push_back(by_name_ ? named(column) : place_of(column));
    return found;
  }

 private:
  bool is_only_target(std::size_t column) const {
    return is_among(column, known_.y) && !is_among(column, known_.x);
  }
  std::size_t without_target() const {
    std::size_t columns = known_.columns;
    for (const std::size_t column : known_.y) columns -= is_only_target(column) ? 1 : 0;
    return columns;
  }

  void check_number() const {
    if (own_.columns == known_.columns) return;
    if (!needs_target_ && own_.columns == without_target()) return;
    throw UserError(
        "'" + file_.name() + "' has " + counted(static_cast<std::int64_t>(own_.columns), "column") +
        "; expected " + std::to_string(known_.columns) + ", as " + known_.where + " has" +
        (needs_target_ ? std::string()
                       : ", or " + std::to_string(without_target()) + " without the target"));
  }

  std::size_t place_of(std::size_t column) const {
    if (own_.columns == known_.columns) return column;
    std::size_t place = column;
    for (std::size_t i = 0; i < column; ++i) place -= is_only_target(i) ? 1 : 0;
    return place;
  }

  std::size_t named(std::size_t column) const {
    const std::string& name = known_.names[column];
    const auto found = std::find(own_.names.begin(), own_.names.end(), name);
    if (found == own_.names.end()) throw_missing(name);
    if (std::find(found + 1, own_.names.end(), name) != own_.names.end())
      throw UserError("'" + file_.name() + "': several columns are called " + in_quotes(name));
    return static_cast<std::size_t>(found - own_.names.begin());
  }

  [[noreturn]] void throw_missing(const std::string& name) const {
    std::vector<std::string> shown;
    for (const std::string& each : own_.names) shown.push_back(in_quotes(each));
    const auto nearest = nearest_name(name, own_.names);
    throw UserError("'" + file_.name() + "' has no column " + in_quotes(name) + ", which " +
                    known_.where + " has; it has " + some_of(shown, kMostNames) +
                    (nearest ? "; did you mean " + in_quotes(*nearest) + "?" : ""));
  }

  const TextFile& file_;
  const Layout& own_;
  const KnownColumns& known_;
  bool needs_target_;
  bool by_name_ = false;
};

std::string names_of(const Layout& layout, const std::vector<std::size_t>& columns) {
  std::vector<std::string> names;
  for (const std::size_t column : columns) names.push_back(layout.column(column));
  return columns.empty() ? "none" : join(names);
}

// A key may differ from that of the training data only if it names the same columns.
class KeyCheck {
 public:
  KeyCheck(const TextFile& file, const Layout& layout, const KnownColumns& known)
      : file_(file), layout_(layout), known_(known) {}

  void expect_same(const std::string& key, const std::vector<std::string>& wanted,
                   const std::vector<std::size_t>& columns) const {
    std::vector<std::size_t> found = columns_named(file_, layout_, key, wanted);
    if (key == "one_hot") std::sort(found.begin(), found.end());
    if (found != columns) fail(key, found, columns);
  }
  void expect_no_input(const std::string& key, const std::vector<std::string>& wanted) const {
    for (const std::string& name : wanted) {
      if (name == "none" || !has_column(layout_, name)) continue;
      for (const std::size_t column : columns_named(file_, layout_, key, {name}))
        if (is_among(column, layout_.x)) fail(key, {column}, layout_.x);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& key, const std::vector<std::size_t>& found,
                         const std::vector<std::size_t>& columns) const {
    throw UserError("'" + file_.name() + "': " + key + " names " + names_of(layout_, found) + "; " +
                    known_.where + (key == "y" || key == "one_hot" ? " has " : " takes ") +
                    names_of(layout_, columns) +
                    (key == "drop" || key == "y" ? " as the input" : "") +
                    "; leave the key out: what data.train says holds here, too");
  }

  const TextFile& file_;
  const Layout& layout_;
  const KnownColumns& known_;
};

void check_keys(const TextFile& file, const CsvOptions& options, const CsvOptions& trained,
                const KnownColumns& known, const Layout& layout) {
  const KeyCheck check(file, layout, known);
  if (options.x && options.x != trained.x) check.expect_same("x", *options.x, layout.x);
  if (options.drop != trained.drop) check.expect_no_input("drop", options.drop);
  if (options.one_hot != trained.one_hot && !options.one_hot.empty()) {
    std::vector<std::size_t> columns;
    for (const std::size_t column : layout.x)
      if (layout.roles[column].one_hot) columns.push_back(column);
    std::sort(columns.begin(), columns.end());
    check.expect_same("one_hot", options.one_hot, columns);
  }
  if (!options.y || options.y == trained.y) return;
  if (layout.y.empty()) return check.expect_no_input("y", *options.y);
  if (*options.y != std::vector<std::string>{"none"}) check.expect_same("y", *options.y, layout.y);
}

}  // namespace

Layout layout_as(const TextFile& file, const CsvOptions& options, const KnownColumns& known,
                 const CsvOptions& trained, bool needs_target) {
  CsvOptions own = options;
  if (options.header == "auto") {
    const CellFormat format = cell_format(file, options);
    const std::vector<std::string> cells = first_row(file, format);
    const bool names = has_all_names(cells, known) || looks_like_names(cells, format.decimal);
    own.header = names ? "true" : "false";
  }
  Layout layout = columns_of(file, own);
  const Matching matching(file, layout, known, needs_target);
  layout.x = matching.find(known.x);
  layout.y = needs_target ? matching.find(known.y) : std::vector<std::size_t>{};
  layout.roles.assign(layout.columns, {});
  for (std::size_t i = 0; i < layout.x.size(); ++i) {
    layout.roles[layout.x[i]].x = static_cast<int>(i);
    layout.roles[layout.x[i]].one_hot = is_among(known.x[i], known.one_hot);
  }
  for (std::size_t i = 0; i < layout.y.size(); ++i)
    layout.roles[layout.y[i]].y = static_cast<int>(i);
  add_fields(file, options.fields, layout);
  check_keys(file, options, trained, known, layout);
  return layout;
}

}  // namespace decent::csv
