#pragma once
// Codes of the modulo exchange, one element at a time: plain expressions that no compiler may
// contract, so that CPUs and GPUs give the same bits.

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "decent/core/element.h"

namespace decent {

/// c = y mod 2^bits with y = floor(x / s' + v), for bits up to 8; 0 where y is not finite.
/// `inverse` is 1 / s', a power of two.
template <int kBits, typename T>
DECENT_ELEMENT std::uint8_t modulo_code(T x, T inverse, T dither) {
  // From this magnitude on, neighbouring floating-point numbers are a multiple of 256 apart, and y
  // is one too, so its code is 0. Every smaller y fits into this integer type.
  using Integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  constexpr T kCodesAreZero = sizeof(T) == 4 ? T(0x1p31) : T(0x1p63);
  const T y = std::floor(x * inverse + dither);
  const Integer whole = std::abs(y) < kCodesAreZero ? static_cast<Integer>(y) : 0;
  return static_cast<std::uint8_t>(whole & ((1 << kBits) - 1));
}

/// d = (other - own + h) mod 2^bits - h with h = 2^(bits-1), where -h becomes 0, because otherwise
/// the two ends of an exchange would not get opposite differences. Higher bits of the codes are
/// ignored.
template <int kBits>
DECENT_ELEMENT std::int8_t modulo_difference(std::uint8_t own, std::uint8_t other) {
  constexpr int kHalf = 1 << (kBits - 1);
  // Every step works on bytes, because a vector holds more of them than of any other type.
  const auto apart = static_cast<std::uint8_t>(other - own);
  const auto shifted = static_cast<std::uint8_t>((apart + kHalf) & (2 * kHalf - 1));
  const auto wrapped = static_cast<std::int8_t>(shifted - kHalf);
  return shifted == 0 ? std::int8_t{0} : wrapped;
}

}  // namespace decent
