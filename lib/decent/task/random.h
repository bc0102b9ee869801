#pragma once
// Random streams that depend on nothing but the recipe's seed, the worker and the step.

#include <c10/core/Device.h>

#include <cstdint>

namespace decent {

enum class RandomStream : std::uint64_t { training = 0, evaluation = 1, trial = 2 };

/// Seeds this process's CPU generator, and that of `device` if it is another one, for one step, so
/// that dropout in step t does not depend on what ran before.
void seed_generator(std::uint64_t seed, int rank, std::int64_t step, RandomStream stream,
                    at::Device device = at::kCPU);

}  // namespace decent
