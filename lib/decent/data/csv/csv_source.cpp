#include "decent/data/csv/csv_source.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/data/csv/numbers.h"
#include "decent/data/csv/table.h"
#include "decent/data/shards.h"

namespace decent::csv {
namespace {

// The elements of a sample that a column of x becomes.
struct Input {
  std::size_t at = 0;  // the first element
  const std::vector<std::string>* categories = nullptr;
  float filling = 0;
};

// How rows become samples, the same for all files.
struct Plan {
  Learned learned;
  KnownColumns columns;            // that samples are made of
  std::vector<std::string> notes;  // on the files
  std::vector<Input> inputs;       // by column of x
  std::size_t width = 0;           // elements of x
};

KnownColumns known_columns(const Layout& layout) {
  KnownColumns columns{
      .names = layout.names, .columns = layout.columns, .x = layout.x, .y = layout.y};
  for (std::size_t i = 0; i < layout.columns; ++i)
    if (layout.roles[i].one_hot) columns.one_hot.push_back(i);
  return columns;
}

std::shared_ptr<Plan> make_plan(Learned learned, const Layout& layout, const Filling& filling) {
  auto plan = std::make_shared<Plan>();
  plan->columns = known_columns(layout);
  plan->learned = std::move(learned);
  for (std::size_t i = 0; i < layout.x.size(); ++i) {
    Input input{.at = plan->width, .filling = filling.number.value_or(plan->learned.means[i])};
    if (layout.roles[layout.x[i]].one_hot) input.categories = &plan->learned.categories[i];
    plan->inputs.push_back(input);
    plan->width += input.categories == nullptr ? 1 : input.categories->size();
  }
  return plan;
}

class CsvSource final : public SourceOfRows {
 public:
  CsvSource(Table table, std::shared_ptr<const Plan> plan)
      : table_(std::move(table)), plan_(std::move(plan)) {
    fields_.push_back({"x", DType::float32, {static_cast<std::int64_t>(plan_->width)}});
    ends_ = {end_of(table_.layout.x), end_of(table_.layout.y)};
    const std::vector<Role>& roles = table_.layout.roles;
    shared_ = std::any_of(roles.begin(), roles.end(),
                          [](const Role& role) { return role.x >= 0 && role.y >= 0; });
    const Target target = plan_->learned.target;
    is_class_ = target == Target::integers || target == Target::words;
    if (is_class_) fields_.push_back({"y", DType::int64, {}});
    if (target == Target::numbers) {
      fields_.push_back({"y", DType::float32, {static_cast<std::int64_t>(table_.layout.y.size())}});
    }
    first_own_ = fields_.size();
    for (const std::string& name : table_.layout.field_names())
      fields_.push_back({name, DType::float32, {}});
  }

  const std::vector<Field>& fields() const override { return fields_; }
  std::int64_t size() const override { return table_.rows.size(); }
  std::vector<std::string> classes() const override { return plan_->learned.classes; }
  Options learned() const override {
    return options_of({.columns = plan_->columns, .learned = plan_->learned});
  }
  std::vector<std::string> notes() const override { return plan_->notes; }

  void read_fields(std::span<const std::int64_t> indices,
                   std::span<std::byte* const> outs) const override {
    assert(outs.size() == fields_.size());
    Row row{.x = outs[kX],
            .y = first_own_ > kY ? outs[kY] : nullptr,
            .own = {outs.begin() + static_cast<std::ptrdiff_t>(first_own_), outs.end()}};
    if (row.x != nullptr && row.y != nullptr && shared_)
      return SourceOfRows::read_fields(indices, outs);
    row.end = std::max(row.x == nullptr ? 0 : ends_[kX], row.y == nullptr ? 0 : ends_[kY]);
    for (std::size_t i = 0; i < row.own.size(); ++i)
      if (row.own[i] != nullptr) row.end = std::max(row.end, table_.layout.fields[i] + 1);
    table_.rows.read(indices, [&](CellReader& reader) {
      read_row(reader, row);
      if (row.x != nullptr) row.x += fields_[kX].sample_bytes();
      if (row.y != nullptr) row.y += fields_[kY].sample_bytes();
      for (std::byte*& out : row.own)
        if (out != nullptr) out += sizeof(float);
    });
  }

 private:
  static constexpr std::size_t kX = 0;
  static constexpr std::size_t kY = 1;

  // Where to write the fields of a row (null for a field that is not wanted), and the column after
  // the last one that they need.
  struct Row {
    std::byte* x = nullptr;
    std::byte* y = nullptr;
    std::vector<std::byte*> own = {};  // by column of `fields`
    std::size_t end = 0;
  };

  static std::size_t end_of(const std::vector<std::size_t>& columns) {
    return columns.empty() ? 0 : *std::max_element(columns.begin(), columns.end()) + 1;
  }

  // The whole file was checked when it was opened, so anything that is wrong now has changed since.
  void read_row(CellReader& reader, const Row& row) const {
    if (row.x != nullptr) std::memset(row.x, 0, fields_[kX].sample_bytes());  // for one-hot columns
    for (std::size_t i = 0; i < row.end; ++i) {
      if (!reader.more()) RowIndex::throw_changed(reader);
      const Role& role = table_.layout.roles[i];
      if (role.x >= 0 && row.x != nullptr) {
        read_input(reader, plan_->inputs[static_cast<std::size_t>(role.x)], row.x);
      } else if (role.y >= 0 && row.y != nullptr) {
        read_target(reader, static_cast<std::size_t>(role.y), row.y);
      } else if (role.field >= 0 && row.own[static_cast<std::size_t>(role.field)] != nullptr) {
        put(row.own[static_cast<std::size_t>(role.field)], 0, number(reader, std::nullopt));
      } else {
        reader.take();
      }
    }
  }

  void read_input(CellReader& reader, const Input& input, std::byte* out) const {
    if (input.categories == nullptr) return put(out, input.at, number(reader, input.filling));
    const std::string_view word = word_in(reader.take());
    if (word.empty()) return;
    const auto place = place_of(word, *input.categories);
    if (!place) RowIndex::throw_changed(reader);
    put(out, input.at + *place, 1.0F);
  }

  void read_target(CellReader& reader, std::size_t y, std::byte* out) const {
    if (!is_class_) return put(out, y, number(reader, std::nullopt));
    const std::string_view word = word_in(reader.take());
    std::optional<std::int64_t> number;
    if (plan_->learned.target == Target::integers) {
      number = integer_in(word);
    } else if (const auto place = place_of(word, plan_->learned.classes)) {
      number = static_cast<std::int64_t>(*place);
    }
    if (!number) RowIndex::throw_changed(reader);
    put(out, 0, *number);
  }

  float number(CellReader& reader, std::optional<float> filling) const {
    float value = 0;
    if (reader.take_number(value)) return value;
    const Number number = number_in(reader.take().text, table_.layout.format.decimal);
    if (number.kind == Number::Kind::number) return number.value;
    if (number.kind != Number::Kind::missing || !filling) RowIndex::throw_changed(reader);
    return *filling;
  }

  template <class T>
  static void put(std::byte* out, std::size_t element, T value) {
    std::memcpy(out + element * sizeof value, &value, sizeof value);
  }

  Table table_;
  std::shared_ptr<const Plan> plan_;
  std::vector<Field> fields_;
  std::array<std::size_t, 2> ends_{};  // by field: the column after the last one that it reads
  std::size_t first_own_ = 0;          // the number of the first field that is a column
  bool is_class_ = false;
  bool shared_ = false;  // whether a column is part of both fields
};

Filling filling_of(const std::string& missing) {
  if (missing == "error") return {};
  if (missing == "mean") return {.mean = true, .number = {}};
  const Number number = number_in(missing, '.');
  if (number.kind != Number::Kind::number)
    throw UserError("missing: expected error, mean or a number, got " + in_quotes(missing));
  return {.mean = false, .number = number.value};
}

Layout layout_like(const Layout& first, const TextFile& first_file, const TextFile& file,
                   const CsvOptions& options) {
  Layout layout = read_layout(file, options);
  if (layout.text() != first.text()) {
    throw UserError("'" + file.name() + "' has other columns than '" + first_file.name() +
                    "': expected " + first.text() + "; got " + layout.text());
  }
  return layout;
}

struct Opened {
  std::vector<Table> tables;
  Learned learned;
};

// Scans the files and learns from them.
Opened learn(const TextFiles& files, const CsvOptions& options, const Filling& filling) {
  if (files.empty()) throw UserError("path: expected at least one file");
  const Layout first = read_layout(*files.front(), options);
  if (first.y.size() > 1 && options.y_type == "class")
    throw UserError("y_type: a class is one column, y names " + std::to_string(first.y.size()));
  Survey survey(first, options.y_type);
  Opened opened;
  for (const auto& file : files) {
    const Layout layout = layout_like(first, *files.front(), *file, options);
    opened.tables.push_back(scan(file, layout, filling, nullptr, &survey));
  }
  opened.learned = survey.learned(files.front()->name(), filling.mean);
  opened.learned.from = "'" + files.front()->name() + "'";
  for (const Table& table : opened.tables) opened.learned.filled += table.filled;
  return opened;
}

// Notes on the use of columns, on whether the first row was a header, and on unused columns.
std::vector<std::string> notes_on(const Layout& layout) {
  constexpr std::size_t kShown = 8;
  const auto names = [&](const auto& wanted) {
    std::vector<std::string> list;
    for (std::size_t i = 0; i < layout.columns; ++i)
      if (wanted(layout.roles[i])) list.push_back(layout.column(i));
    return list.empty() ? std::string("none") : some_of(list, kShown);
  };
  const bool header = !layout.names.empty();
  std::string text = "x is " + names([](const Role& role) { return role.x >= 0; }) + "; y is " +
                     names([](const Role& role) { return role.y >= 0; });
  if (!layout.fields.empty())
    text += "; fields are " + names([](const Role& role) { return role.field >= 0; });
  const std::string unused = names([](const Role& role) { return !role.used(); });
  if (unused != "none") text += "; not used: " + unused;
  return {text + (header ? "; the first row is a header" : "; the first row is no header")};
}

std::unique_ptr<Source> sources_of(Opened opened, const Filling& filling, const TextFiles& files) {
  const Layout& layout = opened.tables.front().layout;
  const auto plan = make_plan(std::move(opened.learned), layout, filling);
  plan->notes = notes_on(layout);
  if (plan->learned.filled > 0) {
    plan->notes.push_back(counted(plan->learned.filled, "missing cell") + " of x " +
                          (plan->learned.filled == 1 ? "is" : "are") + " filled" +
                          (filling.mean ? " with the means of their columns" : ""));
  }
  std::vector<std::unique_ptr<Source>> sources;
  std::vector<std::string> names;
  for (Table& table : opened.tables) {
    sources.push_back(std::make_unique<CsvSource>(std::move(table), plan));
    names.push_back(files[names.size()]->name());
  }
  return concatenated(std::move(sources), std::move(names));
}

void check_reference(const Learned& reference, const Learned& known, const Filling& filling) {
  const bool same = reference.categories == known.categories &&
                    reference.classes == known.classes &&
                    (!filling.mean || reference.means == known.means);
  if (same) return;
  throw UserError("reference: the categories, classes or means of " + reference.from +
                  " are not those of " + known.from +
                  ", by which the data is read; leave reference out");
}

}  // namespace

KnownTable learn_table(const TextFiles& files, const CsvOptions& options) {
  Opened opened = learn(files, options, filling_of(options.missing));
  KnownTable known{.columns = known_columns(opened.tables.front().layout),
                   .learned = std::move(opened.learned)};
  known.columns.where = known.learned.from;
  return known;
}

std::unique_ptr<Source> open_csv(const TextFiles& files, const TextFiles& reference,
                                 const CsvOptions& options, bool needs_target) {
  if (!reference.empty())
    return open_csv_as(files, {}, options, learn_table(reference, options), options, needs_target);
  if (files.empty()) throw UserError("path: expected at least one file");
  const CsvOptions own = needs_target ? options : without_target(*files.front(), options);
  const Filling filling = filling_of(options.missing);
  return sources_of(learn(files, own, filling), filling, files);
}

std::unique_ptr<Source> open_csv_as(const TextFiles& files, const TextFiles& reference,
                                    const CsvOptions& options, const KnownTable& known,
                                    const CsvOptions& trained, bool needs_target) {
  if (files.empty()) throw UserError("path: expected at least one file");
  const Filling filling = filling_of(options.missing);
  if (!reference.empty())
    check_reference(learn_table(reference, options).learned, known.learned, filling);
  Opened opened{.tables = {}, .learned = known.learned};
  opened.learned.filled = 0;
  if (!needs_target) opened.learned.target = Target::none;  // the names of its classes are kept
  for (const auto& file : files) {
    const Layout layout = layout_as(*file, options, known.columns, trained, needs_target);
    if (!opened.tables.empty() &&
        layout.field_names() != opened.tables.front().layout.field_names()) {
      throw UserError("'" + file->name() + "': fields names other columns than in '" +
                      files.front()->name() + "'");
    }
    opened.tables.push_back(scan(file, layout, filling, &opened.learned, nullptr));
    opened.learned.filled += opened.tables.back().filled;
  }
  return sources_of(std::move(opened), filling, files);
}

}  // namespace decent::csv
