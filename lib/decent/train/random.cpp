#include "decent/train/random.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

namespace decent {
namespace {

// The finalizer of splitmix64 (Steele, Lea, Flood 2014): every input bit reaches every output bit.
std::uint64_t mix_bits(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

void seed_generator(std::uint64_t seed, int rank, std::int64_t step, RandomStream stream) {
  std::uint64_t state = mix_bits(seed);
  state = mix_bits(state ^ static_cast<std::uint64_t>(rank));
  state = mix_bits(state ^ static_cast<std::uint64_t>(step));
  state = mix_bits(state ^ static_cast<std::uint64_t>(stream));
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(state);
}

}  // namespace decent
