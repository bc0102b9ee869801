#include "decent/core/options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <string>

#include "decent/core/error.h"
#include "decent/core/registry.h"
#include "decent/core/text.h"

namespace decent {
namespace {

// In the order of OptionValue.
constexpr std::array kValueKinds = {"null",    "true or false", "an integer", "a number",
                                    "a text",  "two numbers",   "a path",     "integers",
                                    "numbers", "texts",         "paths"};
// In the order of OptionType.
constexpr std::array kTypeKinds = {"true or false", "an integer", "a number", "a text", "a path",
                                   "two numbers",   "integers",   "numbers",  "texts",  "paths"};

bool has_type(const OptionValue& value, OptionType type) {
  const std::string_view kind = kValueKinds.at(value.index());
  const std::string_view wanted = kTypeKinds.at(static_cast<std::size_t>(type));
  return kind == wanted ||
         (type == OptionType::number && std::holds_alternative<std::int64_t>(value)) ||
         (type == OptionType::paths && std::holds_alternative<Paths>(value));
}

void check_number(const std::string& name, double number, const Interval& range) {
  if (range.contains(number) && std::isfinite(number)) return;
  const std::string valid = range.text().empty() ? " finite" : range.text();
  throw UserError(name + " is " + number_text(number) + ": it must be" + valid);
}

void check_text(const std::string& name, const std::string& text,
                const std::vector<std::string>& names) {
  if (names.empty() || std::find(names.begin(), names.end(), text) != names.end()) return;
  throw UserError(name + " is '" + text + "': it must be " + join(names, " or "));
}

}  // namespace

const OptionValue* Options::find(std::string_view name) const {
  const auto found = std::find_if(values_.begin(), values_.end(),
                                  [&](const auto& each) { return each.first == name; });
  return found == values_.end() ? nullptr : &found->second;
}

const OptionValue& Options::value(std::string_view name) const {
  const OptionValue* found = find(name);
  return found == nullptr ? kNull : *found;
}

void Options::set(std::string_view name, OptionValue value) {
  const auto found = std::find_if(values_.begin(), values_.end(),
                                  [&](const auto& each) { return each.first == name; });
  if (found == values_.end()) {
    values_.emplace_back(name, std::move(value));
  } else {
    found->second = std::move(value);
  }
}

void Options::throw_missing(std::string_view name) {
  throw std::logic_error("no value of the type that is asked for: option '" + std::string(name) +
                         "'");
}

const OptionKey* NamedOptions::key(std::string_view wanted) const {
  return find_named(keys, wanted);
}

Options usual_options(const std::vector<NamedOptions>& rows) {
  Options usual;
  for (const NamedOptions& row : rows) {
    for (const OptionKey& key : row.keys)
      if (usual.find(key.name) == nullptr) usual.set(key.name, key.fallback.value_or(kNull));
  }
  return usual;
}

void check_known(const Options& given, const std::vector<NamedOptions>& rows,
                 std::string_view kind) {
  const Options usual = usual_options(rows);
  for (const auto& [name, value] : given.all()) {
    if (usual.find(name) != nullptr) continue;
    std::vector<std::string> valid;
    for (const auto& known : usual.all()) valid.push_back(known.first);
    throw UserError("no " + std::string(kind) + " has an option '" + name +
                    "'; valid: " + join(valid));
  }
}

void check_option(const OptionKey& key, const OptionValue& value, std::string_view about) {
  if (std::holds_alternative<std::monostate>(value) && key.is_nullable()) return;
  if (!has_type(value, key.type)) refuse_type(key, value, about);
  const std::string name = std::string(about) + key.name;
  if (const auto* integer = std::get_if<std::int64_t>(&value))
    check_number(name, static_cast<double>(*integer), key.range);
  if (const auto* number = std::get_if<double>(&value)) check_number(name, *number, key.range);
  if (const auto* two = std::get_if<std::array<double, 2>>(&value)) {
    check_number(name + "[0]", (*two)[0], key.range);
    check_number(name + "[1]", (*two)[1], key.range);
  }
  if (const auto* text = std::get_if<std::string>(&value)) check_text(name, *text, key.names);
}

void refuse_type(const OptionKey& key, const OptionValue& value, std::string_view about) {
  throw UserError(std::string(about) + key.name + ": expected " +
                  kTypeKinds.at(static_cast<std::size_t>(key.type)) + ", got " +
                  kValueKinds.at(value.index()));
}

Options with_defaults(const std::vector<OptionKey>& keys, const Options& given) {
  Options all;
  for (const OptionKey& key : keys) {
    if (!key.fallback && given.is_null(key.name))
      throw std::logic_error("option '" + key.name + "' is required");
    if (key.fallback) all.set(key.name, *key.fallback);
  }
  for (const auto& one : given.all()) {  // clang 14: lambdas cannot take structured bindings
    if (find_named(keys, one.first) == nullptr)
      throw std::logic_error("option '" + one.first + "' is not taken");
    all.set(one.first, one.second);
  }
  return all;
}

}  // namespace decent
