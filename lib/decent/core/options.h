#pragma once
// The keys that a row of a table takes in recipes. A row (an optimizer, a data format, ..) declares
// its keys, the recipe is read by these declarations, and the row gets the values. No other file
// has to know a key.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "decent/core/interval.h"

namespace decent {

/// A value of a key; std::monostate is null.
using OptionValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, std::array<double, 2>,
                 std::filesystem::path, std::vector<std::int64_t>, std::vector<double>,
                 std::vector<std::string>, std::vector<std::filesystem::path>>;

inline const OptionValue kNull = std::monostate{};

using Paths = std::vector<std::filesystem::path>;

/// What a recipe may write for a key. A list type also takes a single value without brackets.
enum class OptionType {
  boolean,
  integer,
  number,
  text,
  path,
  two_numbers,
  integers,
  numbers,
  texts,
  paths
};

/// What the key of a data format describes. This decides whether data.eval and data.predict, if
/// they have the format of data.train, take its value from there. Keys whose type is a path are
/// always places.
enum class OptionScope {
  file,     // how files are written: as in data.train if left out, but may differ
  place,    // which data: never taken from data.train
  meaning,  // what a sample is: as in data.train if left out, and must not differ
};

/// One key that a row takes.
struct OptionKey {
  std::string name;
  OptionType type = OptionType::text;
  std::string meaning = {};                  // for the reference: a sentence, or a phrase
                                             // where rows share keys, which adds their names
  std::optional<OptionValue> fallback = {};  // none: the key is required; kNull: it takes null
  bool takes_null = false;                   // although `fallback` is something else
  Interval range = {};                       // of numbers, also of each in a list
  std::vector<std::string> names = {};       // the texts that are valid; empty: any
  bool is_metric = false;                    // the texts that are valid are names of metrics
  std::string example = {};               // for a key that this row requires, although it is null
  OptionScope scope = OptionScope::file;  // of data formats

  bool is_place() const {
    return scope == OptionScope::place || type == OptionType::path || type == OptionType::paths;
  }
  bool is_nullable() const { return takes_null || fallback == kNull; }
};

/// A key with its value. Text literals are texts, although they could be paths.
struct NamedOption {
  NamedOption(std::string its_name, OptionValue its_value)
      : name(std::move(its_name)), value(std::move(its_value)) {}
  template <std::size_t N>
  NamedOption(std::string its_name, const char (&text)[N])
      : NamedOption(std::move(its_name), OptionValue(std::string(text))) {}

  std::string name;
  OptionValue value;
};

/// The values of the keys that a row takes, in its order: {{"betas", std::array{0.9, 0.95}},
/// {"eps", 1e-6}}.
class Options {
 public:
  Options() = default;
  Options(std::initializer_list<NamedOption> values) {
    for (const NamedOption& each : values) values_.emplace_back(each.name, each.value);
  }

  void set(std::string_view name, OptionValue value);
  const std::vector<std::pair<std::string, OptionValue>>& all() const { return values_; }

  /// Null pointer if the key is not set.
  const OptionValue* find(std::string_view name) const;
  /// Null if the key is not set at all.
  const OptionValue& value(std::string_view name) const;
  bool is_null(std::string_view name) const {
    return std::holds_alternative<std::monostate>(value(name));
  }
  /// Throws std::logic_error if the key has no value of that type. Type `number` gives double.
  template <class T>
  const T& get(std::string_view name) const {
    if (const T* typed = std::get_if<T>(&value(name))) return *typed;
    throw_missing(name);
  }
  /// nullopt for null.
  template <class T>
  std::optional<T> get_if(std::string_view name) const {
    if (is_null(name)) return std::nullopt;
    return get<T>(name);
  }

  bool operator==(const Options&) const = default;

 private:
  [[noreturn]] static void throw_missing(std::string_view name);

  std::vector<std::pair<std::string, OptionValue>> values_;
};

/// A row of a table with values of the keys that it takes.
struct NamedValues {
  std::string name;
  Options options;
  bool operator==(const NamedValues&) const = default;
};

/// A row of a table and the keys that it takes.
struct NamedOptions {
  std::string name;
  std::vector<OptionKey> keys = {};

  /// Null if the row does not take that key.
  const OptionKey* key(std::string_view wanted) const;
};

/// The default of every key of these rows, each once; where rows have different defaults, that of
/// the first one. This is what a recipe shows for keys that its own row does not take.
Options usual_options(const std::vector<NamedOptions>& rows);

/// Throws UserError if none of the rows takes one of the options: "no optimizer has an option 'x';
/// valid: ..", where `kind` is "optimizer".
void check_known(const Options& given, const std::vector<NamedOptions>& rows,
                 std::string_view kind);

/// Throws UserError if the value has another type than the key, or is not among those that the key
/// allows. Lists are not looked at. The message begins with `about`.
void check_option(const OptionKey& key, const OptionValue& value, std::string_view about = "");
/// Throws UserError: the value has another type than the key.
[[noreturn]] void refuse_type(const OptionKey& key, const OptionValue& value,
                              std::string_view about = "");

/// The defaults of `keys`, replaced by the values in `given`. For programs without a recipe. Throws
/// std::logic_error if a required key is not given, and if a given key is not among `keys`.
Options with_defaults(const std::vector<OptionKey>& keys, const Options& given);

}  // namespace decent
