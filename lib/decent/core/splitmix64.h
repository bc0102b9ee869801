#pragma once
// The mixer of SplitMix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators",
// 2014). It gives the same numbers on every machine, and every bit of the input affects every bit
// of the output.

#include <cstdint>

namespace decent {

/// Number `index` of the stream that begins at `key`.
constexpr std::uint64_t splitmix64(std::uint64_t key, std::uint64_t index) {
  std::uint64_t z = key + (index + 1) * 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

}  // namespace decent
