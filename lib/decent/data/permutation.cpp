#include "decent/data/permutation.h"

#include <cassert>
#include <cmath>
#include <utility>

#include "decent/core/splitmix64.h"

namespace decent {
namespace {

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
  const std::uint64_t key = splitmix64(splitmix64(0, seed), epoch);
  for (std::size_t round = 0; round < kRounds; ++round) keys_[round] = splitmix64(key, round);
}

std::uint64_t KeyedPermutation::encipher(std::uint64_t value) const {
  std::uint64_t left = value % a_;
  std::uint64_t right = value / a_;
  for (std::size_t round = 0; round < kRounds; ++round) {
    const std::uint64_t modulus = round % 2 == 0 ? a_ : b_;  // the range of `left` in this round
    left = (left + splitmix64(keys_[round], right) % modulus) % modulus;
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
