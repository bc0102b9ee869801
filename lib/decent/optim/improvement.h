#pragma once
// When a value that is measured again and again got better.

#include <cstdint>
#include <optional>

namespace decent {

/// Whether a value is better than the best before it by more than a threshold; the comparison of
/// torch's ReduceLROnPlateau.
struct Improvement {
  bool higher_is_better = false;
  double threshold = 0;
  bool relative = false;  // the threshold is a share of the best, not a difference

  /// A value that is not a number is never better.
  bool operator()(double value, double best) const {
    if (higher_is_better) return value > (relative ? best * (1 + threshold) : best + threshold);
    return value < (relative ? best * (1 - threshold) : best - threshold);
  }
};

/// The best value until now, and how long ago it was.
struct BestSoFar {
  std::optional<double> value = {};      // nothing while there was no number
  std::int64_t without_improvement = 0;  // values in a row after it

  /// Returns whether `next`, which may be NaN, is the new best.
  bool saw(double next, const Improvement& better) {
    const bool is_best = value ? better(next, *value) : next == next;
    if (is_best) value = next;
    without_improvement = is_best ? 0 : without_improvement + 1;
    return is_best;
  }
};

}  // namespace decent
