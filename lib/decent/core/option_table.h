#pragma once
// Reads and writes the members of a struct by a table of its options (option.h).

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "decent/core/option.h"
#include "decent/core/options.h"

namespace decent {

template <class S, std::size_t N>
using OptionTable = std::array<Option<S>, N>;

template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <class T>
constexpr OptionType option_type_of() {
  if constexpr (kIsOptional<T>) {
    return option_type_of<typename T::value_type>();
  } else if constexpr (std::is_same_v<T, bool>) {
    return OptionType::boolean;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return OptionType::integer;
  } else if constexpr (std::is_same_v<T, double>) {
    return OptionType::number;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return OptionType::text;
  } else {
    static_assert(std::is_same_v<T, std::array<double, 2>>);
    return OptionType::two_numbers;
  }
}

template <class T>
OptionValue option_value(const T& member) {
  if constexpr (kIsOptional<T>) {
    return member ? option_value(*member) : kNull;
  } else {
    return member;
  }
}

// The two functions that look at a member are not inlined: where the table is a constant, GCC 12
// warns of the types that it does not have (array-bounds).

/// The value of one option.
template <class S>
[[gnu::noinline]] OptionValue value_of(const S& options, const Option<S>& option) {
  return std::visit([&](auto member) { return option_value(options.*member); }, option.member);
}

/// How recipes describe the option.
template <class S>
OptionKey key_of(const Option<S>& option) {
  const auto key = [&](auto member) {
    using T = std::remove_cvref_t<decltype(std::declval<S>().*member)>;
    OptionValue usual = value_of(S(), option);
    if (option.default_in_recipes) usual = *option.default_in_recipes;
    OptionKey made{.name = std::string(option.name),
                   .type = option_type_of<T>(),
                   .meaning = std::string(option.meaning),
                   .fallback = std::move(usual),
                   .takes_null = kIsOptional<T>,
                   .range = option.range,
                   .is_metric = option.is_metric,
                   .example = std::string(option.example)};
    for (const std::string_view text : option.texts)
      if (!text.empty()) made.names.emplace_back(text);
    return made;
  };
  return std::visit(key, option.member);
}

template <class S, std::size_t N>
std::vector<OptionKey> keys_of(const OptionTable<S, N>& table) {
  std::vector<OptionKey> keys;
  for (const Option<S>& option : table) keys.push_back(key_of(option));
  return keys;
}

/// All options with their values, in the order of the table.
template <class S, std::size_t N>
Options values_of(const S& options, const OptionTable<S, N>& table) {
  Options values;
  for (const Option<S>& option : table) values.set(option.name, value_of(options, option));
  return values;
}

/// Gives a member the value. Returns false if the value has another type; an integer is taken where
/// a number is expected.
template <class T>
bool assign_member(T& member, const OptionValue& value) {
  if constexpr (kIsOptional<T>) {
    member.reset();
    return std::holds_alternative<std::monostate>(value) || assign_member(member.emplace(), value);
  } else {
    if (const T* typed = std::get_if<T>(&value)) {
      member = *typed;
      return true;
    }
    if constexpr (std::is_same_v<T, double>) {
      if (const auto* integer = std::get_if<std::int64_t>(&value)) {
        member = static_cast<double>(*integer);
        return true;
      }
    }
    return false;
  }
}

template <class S>
[[gnu::noinline]] bool assign_option(S& options, const Option<S>& option,
                                     const OptionValue& value) {
  return std::visit([&](auto member) { return assign_member(options.*member, value); },
                    option.member);
}

/// Throws UserError if a member is not among the values that its option allows. Messages begin with
/// `about`.
template <class S, std::size_t N>
void check_options(const S& options, const OptionTable<S, N>& table, std::string_view about = "") {
  for (const Option<S>& option : table)
    check_option(key_of(option), value_of(options, option), about);
}

/// Gives `options` the values of those in `given` that are in the table; the others belong to other
/// rows. Throws UserError for a value of another type. It does not check ranges.
template <class S, std::size_t N>
void assign_options(S& options, const OptionTable<S, N>& table, const Options& given,
                    std::string_view about = "") {
  for (const Option<S>& option : table) {
    const OptionValue* value = given.find(option.name);
    if (value == nullptr) continue;
    if (!assign_option(options, option, *value)) refuse_type(key_of(option), *value, about);
  }
}

/// The struct with the values in `given`. Throws UserError as the two functions above do.
template <class S, std::size_t N>
S options_from(const Options& given, const OptionTable<S, N>& table, std::string_view about = "") {
  S options;
  assign_options(options, table, given, about);
  check_options(options, table, about);
  return options;
}

}  // namespace decent
