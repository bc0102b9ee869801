#pragma once
// The random numbers of one transform of one sample. They depend only on its place, not on the
// number of threads or on earlier draws.

#include <cassert>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "decent/core/splitmix64.h"

namespace decent {

/// The stream of (seed, epoch, sample, transform). Users rely on the numbers, which are the same on
/// every machine and in every version of the program.
class SampleRandom {
 public:
  /// `sample` is the sample's number in the data set, `transform` the transform's number in the
  /// list.
  SampleRandom(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample,
               std::uint64_t transform)
      : key_(splitmix64(splitmix64(splitmix64(splitmix64(0, seed), epoch), sample), transform)) {}

  std::uint64_t bits() { return splitmix64(key_, drawn_++); }

  /// In [0, 1), of 2^53 values that are equally far from one another.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  /// In [low, high), or low if the two are equal.
  double uniform(double low, double high) { return low + uniform() * (high - low); }
  /// In (0, 1], so that it has a logarithm.
  double positive_uniform() { return 1 - uniform(); }
  /// Of the normal distribution with mean 0 and deviation 1: one of the two by Box and Muller.
  double normal() {
    const double radius = std::sqrt(-2 * std::log(positive_uniform()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }
  bool chance(double probability) { return uniform() < probability; }

  /// In [0, n), each equally likely; n >= 1.
  std::int64_t integer(std::int64_t n) {
    assert(n >= 1);
    const auto range = static_cast<std::uint64_t>(n);
    // Numbers above the last multiple of `range` would make some results more likely.
    constexpr std::uint64_t kMaxUint64 = std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t end = kMaxUint64 - kMaxUint64 % range;
    std::uint64_t drawn = bits();
    while (drawn >= end) drawn = bits();
    return static_cast<std::int64_t>(drawn % range);
  }

 private:
  std::uint64_t key_;
  std::uint64_t drawn_ = 0;
};

}  // namespace decent
