#pragma once
// Finds a rule by one of its names, and reads and writes its options by theirs.

#include <array>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/optim/bucket_update.h"
#include "decent/optim/rules/all.h"

namespace decent::rules {

/// The value of an option.
template <class Options>
UpdateValue value_of(const Options& options, const Option<Options>& option) {
  return std::visit([&](auto member) { return UpdateValue(options.*member); }, option.member);
}

// "true or false", for messages.
inline const char* type_name(const UpdateValue& value) {
  constexpr std::array kNames = {"true or false", "an integer", "a number", "two numbers"};
  return kNames.at(value.index());
}

/// Throws UserError if `value` has another type than the option.
template <class Options>
void set(Options& options, const Option<Options>& option, const UpdateValue& value) {
  std::visit(
      [&](auto member) {
        using T = std::remove_cvref_t<decltype(options.*member)>;
        if (const T* typed = std::get_if<T>(&value)) {
          options.*member = *typed;
          return;
        }
        if constexpr (std::is_same_v<T, double>) {
          if (const auto* integer = std::get_if<std::int64_t>(&value)) {
            options.*member = static_cast<double>(*integer);
            return;
          }
        }
        throw UserError(std::string(option.name) + ": expected " + type_name(UpdateValue(T())) +
                        ", got " + type_name(value));
      },
      option.member);
}

// "in [0, 1)", ">= 1"
inline std::string text_of(const Range& range) {
  std::ostringstream text;
  if (std::isinf(range.below)) {
    text << ">= " << range.at_least;
  } else {
    text << "in [" << range.at_least << ", " << range.below << ")";
  }
  return text.str();
}

/// Throws UserError if the option's value, or one of its two, is out of its range.
template <class Options>
void check(const Options& options, const Option<Options>& option) {
  const auto check_number = [&](const std::string& name, auto number) {
    const auto value = static_cast<double>(number);
    const Range& range = option.range;
    if (value >= range.at_least && (value < range.below || std::isinf(range.below))) return;
    throw UserError(name + " is " + std::to_string(number) + ": it must be " + text_of(range));
  };
  const std::string name(option.name);
  const UpdateValue value = value_of(options, option);
  if (const auto* integer = std::get_if<std::int64_t>(&value)) check_number(name, *integer);
  if (const auto* number = std::get_if<double>(&value)) check_number(name, *number);
  if (const auto* pair = std::get_if<std::array<double, 2>>(&value)) {
    check_number(name + "[0]", (*pair)[0]);
    check_number(name + "[1]", (*pair)[1]);
  }
}

/// Calls found(the rule as a type, its name) if the rule has that name.
template <class Rule, class Found>
bool find_in(std::string_view wanted, const Found& found) {
  for (const Name& name : Rule::kNames) {
    if (name.name != wanted) continue;
    found(std::type_identity<Rule>(), name);
    return true;
  }
  return false;
}

template <class... Rules, class Found>
void find_among(TypeList<Rules...>, std::string_view wanted, const Found& found) {
  if ((find_in<Rules>(wanted, found) || ...)) return;
  throw UserError("unknown update '" + std::string(wanted) + "'; valid: " + join(update_names()));
}

/// The same for the rule of that name in the list. Throws UserError, which lists all names, if
/// there is none.
template <class Found>
void find(std::string_view wanted, const Found& found) {
  find_among(All(), wanted, found);
}

}  // namespace decent::rules
