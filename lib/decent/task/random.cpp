#include "decent/task/random.h"

#include <ATen/Context.h>

#include <mutex>

#include "decent/core/splitmix64.h"

namespace decent {
namespace {

void set_seed(at::Generator generator, std::uint64_t state) {
  const std::lock_guard<std::mutex> lock(generator.mutex());
  generator.set_current_seed(state);
}

}  // namespace

void seed_generator(std::uint64_t seed, int rank, std::int64_t step, RandomStream stream,
                    at::Device device) {
  std::uint64_t state = splitmix64(0, seed);
  state = splitmix64(state, static_cast<std::uint64_t>(rank));
  state = splitmix64(state, static_cast<std::uint64_t>(step));
  state = splitmix64(state, static_cast<std::uint64_t>(stream));
  set_seed(at::globalContext().defaultGenerator(at::kCPU), state);
  if (!device.is_cpu()) set_seed(at::globalContext().defaultGenerator(device), state);
}

}  // namespace decent
