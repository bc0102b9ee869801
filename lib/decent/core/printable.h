#pragma once
// Numbers as they are shown to the user.

#include <cmath>
#include <limits>

namespace decent {

/// The number for printf, fmt and std::to_string, which would show a NaN's meaningless sign as
/// "-nan" (on x86, 0/0 is negative).
inline double printable(double number) {
  return std::isnan(number) ? std::numeric_limits<double>::quiet_NaN() : number;
}

}  // namespace decent
