#pragma once
// Numbers as they are shown to the user.

#include <cmath>
#include <limits>

namespace decent {

/// The number for printf, fmt and std::to_string: a NaN has a sign that means nothing (x86 gives
/// 0/0 a negative one), and those would show it, as "-nan".
inline double printable(double number) {
  return std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number;
}

}  // namespace decent
