// Converts what a table has learned to named values (data.json), and back.

#include <algorithm>
#include <array>
#include <utility>

#include "decent/core/error.h"
#include "decent/data/csv/csv_source.h"

namespace decent::csv {
namespace {

constexpr std::array<std::pair<Target, const char*>, 4> kTargets = {{{Target::none, "none"},
                                                                     {Target::numbers, "numbers"},
                                                                     {Target::integers, "integers"},
                                                                     {Target::words, "words"}}};

std::vector<std::int64_t> numbers_of(const std::vector<std::size_t>& columns) {
  return {columns.begin(), columns.end()};
}

std::string categories_name(std::size_t x) { return "categories." + std::to_string(x); }

// Reads values. Those that cannot come from a table are damage.
class Reader {
 public:
  Reader(const Options& options, const std::string& where) : options_(options), where_(where) {}

  [[noreturn]] void fail(const std::string& name) const {
    throw UserError(where_ + " is damaged: '" + name + "' is not what a table has learned");
  }

  template <class T>
  T get(const std::string& name) const {
    if (const T* value = std::get_if<T>(&options_.value(name))) return *value;
    fail(name);
  }
  // An empty list has no type of its own.
  template <class T>
  std::vector<T> list(const std::string& name) const {
    const OptionValue& value = options_.value(name);
    const auto* texts = std::get_if<std::vector<std::string>>(&value);
    if (texts != nullptr && texts->empty()) return {};
    return get<std::vector<T>>(name);
  }

  // Reads columns, each of which must appear only once.
  std::vector<std::size_t> columns(const std::string& name, std::size_t most) const {
    std::vector<std::size_t> found;
    for (const std::int64_t column : list<std::int64_t>(name)) {
      const auto number = static_cast<std::size_t>(column);
      if (column < 0 || number >= most || std::count(found.begin(), found.end(), number) > 0)
        fail(name);
      found.push_back(number);
    }
    return found;
  }

 private:
  const Options& options_;
  const std::string& where_;
};

// Reads words, which must be sorted, because look-ups rely on it.
std::vector<std::string> sorted(const Reader& reader, const std::string& name,
                                std::vector<std::string> words) {
  if (!std::is_sorted(words.begin(), words.end())) reader.fail(name);
  return words;
}

Target target_in(const Reader& reader) {
  const auto name = reader.get<std::string>("target");
  for (const auto& [target, its] : kTargets)
    if (name == its) return target;
  reader.fail("target");
}

}  // namespace

Options options_of(const KnownTable& known) {
  Options options;
  options.set("columns", known.columns.names);
  options.set("number_of_columns", static_cast<std::int64_t>(known.columns.columns));
  options.set("x", numbers_of(known.columns.x));
  options.set("y", numbers_of(known.columns.y));
  options.set("one_hot", numbers_of(known.columns.one_hot));
  for (std::size_t i = 0; i < known.learned.categories.size(); ++i)
    if (!known.learned.categories[i].empty())
      options.set(categories_name(i), known.learned.categories[i]);
  options.set("means", std::vector<double>(known.learned.means.begin(), known.learned.means.end()));
  for (const auto& [target, name] : kTargets)
    if (target == known.learned.target) options.set("target", std::string(name));
  return options;
}

KnownTable known_table_in(const Reading& reading) {
  const Options& learned = *reading.learned;
  const Reader reader(learned, reading.where);
  KnownTable known;
  KnownColumns& columns = known.columns;
  columns.names = reader.list<std::string>("columns");
  const auto count = reader.get<std::int64_t>("number_of_columns");
  if (count < 1 || count > (1 << 24)) reader.fail("number_of_columns");
  columns.columns = static_cast<std::size_t>(count);
  if (!columns.names.empty() && columns.names.size() != columns.columns) reader.fail("columns");
  columns.x = reader.columns("x", columns.columns);
  columns.y = reader.columns("y", columns.columns);
  columns.one_hot = reader.columns("one_hot", columns.columns);
  columns.where = reading.where;
  if (columns.x.empty()) reader.fail("x");
  for (std::size_t i = 0; i < columns.x.size(); ++i) {
    const bool has = std::count(columns.one_hot.begin(), columns.one_hot.end(), columns.x[i]) > 0;
    const std::string name = categories_name(i);
    known.learned.categories.push_back(has && !learned.is_null(name)
                                           ? sorted(reader, name, reader.list<std::string>(name))
                                           : std::vector<std::string>{});
  }
  for (const double mean : reader.list<double>("means"))
    known.learned.means.push_back(static_cast<float>(mean));
  if (known.learned.means.size() != columns.x.size()) reader.fail("means");
  known.learned.target = target_in(reader);
  known.learned.classes = sorted(reader, "classes", reading.classes.value());
  known.learned.from = reading.where;
  const bool has_target = known.learned.target != Target::none;
  if (has_target == columns.y.empty()) reader.fail("target");
  return known;
}

}  // namespace decent::csv
