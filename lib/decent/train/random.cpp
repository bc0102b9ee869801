#include "decent/train/random.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>

#include "decent/core/splitmix64.h"

namespace decent {
void seed_generator(std::uint64_t seed, int rank, std::int64_t step, RandomStream stream) {
  std::uint64_t state = splitmix64(0, seed);
  state = splitmix64(state, static_cast<std::uint64_t>(rank));
  state = splitmix64(state, static_cast<std::uint64_t>(step));
  state = splitmix64(state, static_cast<std::uint64_t>(stream));
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(state);
}

}  // namespace decent
