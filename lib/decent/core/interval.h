#pragma once
// The numbers that an option allows.

#include <optional>
#include <string>

#include "decent/core/text.h"

namespace decent {

/// From `low` to `high`; an end that is absent does not limit.
struct Interval {
  std::optional<double> low = {};
  std::optional<double> high = {};
  bool low_open = false;  // without the end itself
  bool high_open = false;

  /// False for NaN, unless there is no limit.
  bool contains(double number) const {
    if (low && !(low_open ? number > *low : number >= *low)) return false;
    return !high || (high_open ? number < *high : number <= *high);
  }
  /// " >= 1", " <= 0", " in [0, 1)", or nothing for all numbers.
  std::string text() const {
    if (low && high) {
      return std::string(" in ") + (low_open ? "(" : "[") + number_text(*low) + ", " +
             number_text(*high) + (high_open ? ")" : "]");
    }
    if (low) return (low_open ? " > " : " >= ") + number_text(*low);
    if (high) return (high_open ? " < " : " <= ") + number_text(*high);
    return "";
  }
};

constexpr Interval at_least(double low) { return {.low = low}; }
constexpr Interval at_most(double high) { return {.high = high}; }
constexpr Interval above(double low) { return {.low = low, .low_open = true}; }
/// Both ends included.
constexpr Interval within(double low, double high) { return {.low = low, .high = high}; }
/// Neither end included.
constexpr Interval within_open(double low, double high) {
  return {.low = low, .high = high, .low_open = true, .high_open = true};
}
/// [low, high)
constexpr Interval from_to_below(double low, double high) {
  return {.low = low, .high = high, .high_open = true};
}
/// (low, high]
constexpr Interval above_up_to(double low, double high) {
  return {.low = low, .high = high, .low_open = true};
}

}  // namespace decent
