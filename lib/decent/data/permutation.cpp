#include "decent/data/permutation.h"

#include <cassert>
#include <cmath>
#include <utility>

namespace decent {
namespace {

constexpr std::uint64_t kGolden =
    0x9E3779B97F4A7C15;  // 2^64 / golden ratio: the step of SplitMix64

// Output function of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number
// Generators", 2014).
std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// The number `index` of the stream of SplitMix64 that begins at `key`.
std::uint64_t stream(std::uint64_t key, std::uint64_t index) {
  return mix(key + (index + 1) * kGolden);
}

std::uint64_t divide_up(std::uint64_t x, std::uint64_t y) { return x / y + (x % y != 0); }

std::uint64_t root_up(std::uint64_t n) {
  auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(n)));
  // The floating-point root may be off by one either way; root^2 >= n is divide_up(n, root) <=
  // root.
  while (root > 1 && divide_up(n, root - 1) <= root - 1) --root;
  while (root == 0 || divide_up(n, root) > root) ++root;
  return root;
}

}  // namespace

KeyedPermutation::KeyedPermutation(std::uint64_t n, std::uint64_t seed, std::uint64_t epoch)
    : n_(n), a_(root_up(n)), b_(divide_up(n, a_)) {
  assert(n >= 1 && n <= std::uint64_t{1} << 63);
  const std::uint64_t key = stream(stream(0, seed), epoch);
  for (std::size_t round = 0; round < kRounds; ++round) keys_[round] = stream(key, round);
}

std::uint64_t KeyedPermutation::encipher(std::uint64_t value) const {
  std::uint64_t left = value % a_;
  std::uint64_t right = value / a_;
  for (std::size_t round = 0; round < kRounds; ++round) {
    const std::uint64_t modulus = round % 2 == 0 ? a_ : b_;  // the one that `left` lives in
    left = (left + stream(keys_[round], right) % modulus) % modulus;
    std::swap(left, right);
  }
  return a_ * right + left;
}

std::uint64_t KeyedPermutation::operator()(std::uint64_t i) const {
  assert(i < n_);
  do {
    i = encipher(i);
  } while (i >= n_);
  return i;
}

}  // namespace decent
