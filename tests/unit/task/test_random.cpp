#include "decent/task/random.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randperm.h>
#include <gtest/gtest.h>

#include <vector>

namespace decent {
namespace {

struct Key {
  std::uint64_t seed = 0;
  int rank = 0;
  std::int64_t step = 1;
  RandomStream stream = RandomStream::training;
};

at::Tensor numbers(const Key& key) {
  seed_generator(key.seed, key.rank, key.step, key.stream);
  return at::rand({8});
}

TEST(SeedGenerator, GivesTheSameNumbersWhateverRanBefore) {
  const at::Tensor expected = numbers({.seed = 5, .rank = 2, .step = 7});
  at::rand({1000});
  EXPECT_TRUE(at::equal(numbers({.seed = 5, .rank = 2, .step = 7}), expected));
  at::randperm(3);
  EXPECT_TRUE(at::equal(numbers({.seed = 5, .rank = 2, .step = 7}), expected));
}

TEST(SeedGenerator, GivesOtherNumbersForAnyOtherKey) {
  std::vector<at::Tensor> all;
  for (const std::uint64_t seed : {0ULL, 1ULL, 2ULL, ~0ULL}) {
    for (const int rank : {0, 1, 2}) {
      for (const std::int64_t step : {0, 1, 2, 3}) {
        for (const auto stream :
             {RandomStream::training, RandomStream::evaluation, RandomStream::trial}) {
          all.push_back(numbers({seed, rank, step, stream}));
        }
      }
    }
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) ASSERT_FALSE(at::equal(all[i], all[j])) << i << ", " << j;
  }
}

// Neighbouring steps share nothing: a wrong mixing of bits would show in the mean or in repeats.
TEST(SeedGenerator, GivesUniformNumbersOverSteps) {
  std::vector<at::Tensor> first;
  for (std::int64_t step = 1; step <= 1000; ++step) {
    first.push_back(numbers({.step = step}).narrow(0, 0, 1));
  }
  // The mean of 1000 uniform numbers has a standard deviation of 0.009: five of them.
  EXPECT_NEAR(at::cat(first).mean().item<double>(), 0.5, 0.046);
}

}  // namespace
}  // namespace decent
