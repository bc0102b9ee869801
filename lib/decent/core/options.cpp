#include "decent/core/options.h"

#include <algorithm>
#include <stdexcept>

namespace decent {

const OptionValue& Options::value(std::string_view name) const {
  static const OptionValue null;
  const auto found = std::find_if(values_.begin(), values_.end(),
                                  [&](const auto& each) { return each.first == name; });
  return found == values_.end() ? null : found->second;
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

Options with_defaults(const std::vector<OptionKey>& keys, const Options& given) {
  Options all;
  for (const OptionKey& key : keys) {
    if (!key.fallback && given.is_null(key.name))
      throw std::logic_error("option '" + key.name + "' is required");
    if (key.fallback) all.set(key.name, *key.fallback);
  }
  for (const auto& one : given.all()) {  // clang 14: lambdas cannot take structured bindings
    const bool taken = std::any_of(keys.begin(), keys.end(),
                                   [&](const OptionKey& key) { return key.name == one.first; });
    if (!taken) throw std::logic_error("option '" + one.first + "' is not taken");
    all.set(one.first, one.second);
  }
  return all;
}

}  // namespace decent
