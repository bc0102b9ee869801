#pragma once
// A shuffle that needs no memory: a keyed bijection of [0, n), evaluated one position at a time.
//
// A generalised Feistel network over Z_a x Z_b with a = ceil(sqrt(n)) and b = ceil(n / a), and
// cycle walking back into [0, n), after Black and Rogaway, "Ciphers with Arbitrary Finite Domains"
// (CT-RSA 2002), sections 3 and 5. For good statistics, not for secrecy. Users rely on the order:
// the same (n, seed, epoch) gives the same order on every machine and in every version of the
// program.

#include <array>
#include <cstdint>

namespace decent {

/// Immutable: calls may come from any thread at once.
class KeyedPermutation {
 public:
  /// 1 <= n <= 2^63.
  KeyedPermutation(std::uint64_t n, std::uint64_t seed, std::uint64_t epoch);

  /// Maps position `i` of [0, n) into [0, n). The expected cost is constant: because a * b < n + a,
  /// at most a of the values that a walk can meet are outside [0, n).
  std::uint64_t operator()(std::uint64_t i) const;

 private:
  static constexpr std::size_t kRounds = 8;  // even: the network ends in the halves it began with

  std::uint64_t encipher(std::uint64_t value) const;

  std::uint64_t n_;
  std::uint64_t a_;
  std::uint64_t b_;
  std::array<std::uint64_t, kRounds> keys_;
};

}  // namespace decent
