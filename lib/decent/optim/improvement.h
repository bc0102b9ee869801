#pragma once
// Whether a value that is measured repeatedly got better.

#include <cmath>
#include <cstdint>
#include <optional>

namespace decent {

/// Whether a value is better than the best before it by more than a threshold, compared as in
/// torch's ReduceLROnPlateau.
struct Improvement {
  bool higher_is_better = false;
  double threshold = 0;
  bool relative = false;  // the threshold is a share of the best, not a difference

  /// NaN is never better.
  bool operator()(double value, double best) const {
    if (higher_is_better) return value > (relative ? best * (1 + threshold) : best + threshold);
    return value < (relative ? best * (1 - threshold) : best - threshold);
  }
};

/// The best value until now, and how long ago it was.
struct BestSoFar {
  std::optional<double> value = {};      // nothing until a value was finite
  std::int64_t without_improvement = 0;  // values in a row after it

  /// Returns whether `next` is the new best, which only a finite value can be.
  bool saw(double next, const Improvement& better) {
    const bool is_best = std::isfinite(next) && (!value || better(next, *value));
    if (is_best) value = next;
    without_improvement = is_best ? 0 : without_improvement + 1;
    return is_best;
  }
};

}  // namespace decent
