#include "decent/data/permutation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <unordered_set>
#include <vector>

namespace decent {
namespace {

std::vector<std::uint64_t> order_of(std::uint64_t n, std::uint64_t seed, std::uint64_t epoch) {
  const KeyedPermutation permutation(n, seed, epoch);
  std::vector<std::uint64_t> order(n);
  for (std::uint64_t i = 0; i < n; ++i) order[i] = permutation(i);
  return order;
}

void expect_bijection(std::vector<std::uint64_t> order) {
  std::sort(order.begin(), order.end());
  for (std::uint64_t i = 0; i < order.size(); ++i) ASSERT_EQ(order[i], i) << "n = " << order.size();
}

TEST(KeyedPermutation, IsABijectionForEverySmallSize) {
  for (std::uint64_t n = 1; n <= 300; ++n) expect_bijection(order_of(n, n, 3));
}

TEST(KeyedPermutation, IsABijectionAroundSquares) {
  for (const std::uint64_t n :
       {1023ULL, 1024ULL, 1025ULL, 65535ULL, 65536ULL, 65537ULL, 250001ULL}) {
    expect_bijection(order_of(n, 0, 0));
  }
}

// The order is a promise: a change would silently change every run. Values computed apart from this
// code, in Python with unbounded integers, from these definitions (all sums modulo 2^64, G =
// 0x9E3779B97F4A7C15):
//   mix(z):  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;  z = (z ^ z >> 27) * 0x94D049BB133111EB;  z ^
//   z >> 31 stream(k, i) = mix(k + (i + 1) * G)           the i-th output of SplitMix64 seeded with
//   k key = stream(stream(0, seed), epoch);  a = ceil(sqrt(n));  b = ceil(n / a) encipher(i):  L, R
//   = i mod a, i div a
//                 for j = 1..8:  L, R = R, (L + stream(stream(key, j - 1), R)) mod (a if j is odd,
//                 else b) a * R + L
//   the value is the first of encipher(i), encipher(encipher(i)), .. that is below n
TEST(KeyedPermutation, NeverChanges) {
  using Order = std::vector<std::uint64_t>;
  EXPECT_EQ(order_of(10, 0, 0), (Order{4, 3, 8, 6, 0, 1, 9, 7, 2, 5}));
  EXPECT_EQ(order_of(10, 0, 1), (Order{2, 5, 4, 3, 7, 8, 6, 0, 9, 1}));
  EXPECT_EQ(order_of(10, 1, 0), (Order{1, 4, 9, 7, 2, 0, 3, 6, 8, 5}));
  Order order = order_of(1442, 1234567890123456789, 3);
  order.resize(8);
  EXPECT_EQ(order, (Order{590, 88, 858, 252, 550, 1314, 1313, 805}));

  const KeyedPermutation large((1ULL << 32) + 15, 42, 7);
  EXPECT_EQ(large(0), 295563254U);
  EXPECT_EQ(large(2), 1620981159U);
  EXPECT_EQ(large(1ULL << 31), 3570253864U);
  EXPECT_EQ(large((1ULL << 32) + 14), 2038132539U);
  const KeyedPermutation largest(1ULL << 63, ~0ULL, ~0ULL);
  EXPECT_EQ(largest(0), 4580800854081054590U);
  EXPECT_EQ(largest((1ULL << 63) - 1), 306085819367897197U);
}

TEST(KeyedPermutation, StaysInRangeAndInjectiveForLargeSizes) {
  for (const std::uint64_t n :
       {(1ULL << 32) - 1, (1ULL << 32) + 1, (1ULL << 40) + 12345, (1ULL << 63) - 1}) {
    const KeyedPermutation permutation(n, 5, 6);
    std::unordered_set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < 20000; ++i) {
      for (const std::uint64_t position : {i, n - 1 - i}) {
        const std::uint64_t value = permutation(position);
        ASSERT_LT(value, n);
        ASSERT_TRUE(seen.insert(value).second) << "n = " << n;
      }
    }
  }
}

TEST(KeyedPermutation, DiffersBySeedAndEpoch) {
  const std::vector<std::uint64_t> base = order_of(1000, 0, 0);
  EXPECT_EQ(base, order_of(1000, 0, 0));
  EXPECT_NE(base, order_of(1000, 1, 0));
  EXPECT_NE(base, order_of(1000, 0, 1));
  EXPECT_NE(order_of(1000, 0, 1), order_of(1000, 1, 0));
}

// Over many keys each sample must come equally often at each position: the chi-square statistic of
// the n*n counts, with (n-1)^2 degrees of freedom, lies within 5 standard deviations (sqrt of twice
// that) of its mean.
TEST(KeyedPermutation, SendsEachSampleEverywhereEquallyOften) {
  constexpr int kKeys = 20000;
  for (const std::uint64_t n : {2ULL, 3ULL, 5ULL, 10ULL, 16ULL, 30ULL}) {
    std::vector<int> counts(n * n);
    for (int key = 0; key < kKeys; ++key) {
      const std::vector<std::uint64_t> order =
          order_of(n, static_cast<std::uint64_t>(key % 100), static_cast<std::uint64_t>(key / 100));
      for (std::uint64_t i = 0; i < n; ++i) ++counts[i * n + order[i]];
    }
    const double expected = static_cast<double>(kKeys) / static_cast<double>(n);
    double chi_square = 0;
    for (int count : counts) chi_square += (count - expected) * (count - expected) / expected;
    const double freedom = static_cast<double>((n - 1) * (n - 1));
    EXPECT_NEAR(chi_square, freedom, 5 * std::sqrt(2 * freedom)) << "n = " << n;
  }
}

// Neighbours must not stay neighbours: in a random order of n an average of 2 adjacent pairs keeps
// a distance of 1.
TEST(KeyedPermutation, SeparatesNeighbours) {
  constexpr int kKeys = 200;
  int kept = 0;
  for (std::uint64_t seed = 0; seed < kKeys; ++seed) {
    const std::vector<std::uint64_t> order = order_of(1442, seed, 0);
    for (std::size_t i = 1; i < order.size(); ++i) {
      kept += order[i] + 1 == order[i - 1] || order[i - 1] + 1 == order[i] ? 1 : 0;
    }
  }
  EXPECT_NEAR(kept, 2 * kKeys, 5 * std::sqrt(2.0 * kKeys));  // Poisson, 5 standard deviations
}

}  // namespace
}  // namespace decent
