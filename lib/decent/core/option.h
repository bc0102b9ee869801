#pragma once
// One option of a row of a table (an optimizer, a schedule, ..): a member of the row's struct of
// options, with everything that recipes, their reference and messages say about it. No other file
// has to know an option. option_table.h reads and writes members by these descriptions.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "decent/core/interval.h"

namespace decent {

/// Members that an option can have. An optional one takes null.
template <class S>
using OptionMember = std::variant<bool S::*, std::int64_t S::*, double S::*, std::string S::*,
                                  std::array<double, 2> S::*, std::optional<std::int64_t> S::*,
                                  std::optional<double> S::*, std::optional<std::string> S::*>;

/// An option that is kept in a member of S, whose initial value is its default. Rows that have an
/// option of the same name describe it alike, because recipes have one key for it.
template <class S>
struct Option {
  std::string_view name;
  std::string_view meaning;  // a phrase; the reference adds the rows that take the option
  OptionMember<S> member;
  Interval range = {};                         // of numbers, also of each of two
  std::array<std::string_view, 3> texts = {};  // the texts that are valid; empty: any
  bool is_metric = false;                      // the texts that are valid are names of metrics
  std::string_view example = {};  // for an option that this row requires, although it is null
  std::optional<double> default_in_recipes = {};  // if it is not that of S
};

/// Two options that do not go together: `option` is `value`, which needs another value of `other`.
struct OptionConflict {
  std::string_view option;
  std::string_view value;
  std::string_view other;
  std::string_view needed;  // "> 0"

  /// "true needs momentum > 0", with `before` in front of the other option's name.
  std::string text(std::string_view before = "") const {
    return std::string(value).append(" needs ").append(before).append(other).append(" ").append(
        needed);
  }
};

}  // namespace decent
