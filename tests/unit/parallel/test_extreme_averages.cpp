// Averages of numbers that are near the end of what their type can hold, or that are no numbers.

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "decent/parallel/global_average.h"
#include "decent/parallel/same_bits.h"
#include "training.h"

namespace decent {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr float kInf = std::numeric_limits<float>::infinity();

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  return at::equal(bit_hashes({{a, b}})[0], bit_hashes({{a, b}})[1]);
}

// What every worker holds after an average of the buffers that `of_worker` gives.
template <typename OfWorker>
std::vector<NamedTensors> average_of(int workers, const OfWorker& of_worker) {
  return testing::run_workers(workers, [&](const testing::Worker& world) {
    const NamedTensors buffers = of_worker(world->rank());
    GlobalAverage average(world, {}, buffers, {.average_buffers = true});
    average.average(/*keep_backup=*/false, /*return_distance=*/false);
    return buffers;
  });
}

NamedTensors masks() {
  const at::Tensor nan = at::full({2}, 0x7FC01234, at::kInt).view(at::kFloat);
  return {{"lowest", at::full({3, 3}, kLowest)},
          {"half", at::full({2}, 40000, at::kHalf)},
          {"bfloat16", at::full({2}, -3e38, at::kBFloat16)},
          {"double", at::full({}, std::numeric_limits<double>::lowest(), at::kDouble)},
          {"infinite", at::full({2, 2}, -kInf).triu()},
          {"negative zero", at::full({2}, -0.0)},
          {"nan", nan},
          {"third", at::full({3}, 1.0 / 3, at::kDouble)},
          {"transposed", testing::scattered({4, 3}, 1).t()},
          {"empty", at::empty({0})}};
}

TEST(AverageOfBuffers, LeavesThoseAloneThatAreTheSameOnAllWorkers) {
  for (const int workers : {1, 2, 3, 5}) {
    const auto averages = average_of(workers, [](int) { return masks(); });
    const NamedTensors expected = masks();
    for (const NamedTensors& buffers : averages) {
      for (std::size_t i = 0; i < buffers.size(); ++i) {
        EXPECT_TRUE(same_bits(buffers[i].second, expected[i].second))
            << expected[i].first << " with " << workers << " workers";
      }
    }
  }
}

TEST(AverageOfBuffers, DoesNotOverflowInTheSum) {
  const auto of_worker = [](int rank) {
    return NamedTensors{{"float", at::tensor({kLowest, static_cast<float>(rank)})},
                        {"half", at::tensor({40000.0, 1.0 * rank}).to(at::kHalf)},
                        {"double", at::tensor({1e308, 1.0 * rank}, at::kDouble)},
                        {"infinite", at::tensor({-kInf, static_cast<float>(rank)})}};
  };
  for (const int workers : {2, 3, 4}) {
    const double mean = (workers - 1) / 2.0;
    for (const NamedTensors& buffers : average_of(workers, of_worker)) {
      EXPECT_TRUE(at::equal(buffers[0].second,
                            at::tensor({static_cast<double>(kLowest), mean}).to(at::kFloat)));
      EXPECT_TRUE(at::equal(buffers[1].second, at::tensor({40000.0, mean}).to(at::kHalf)));
      EXPECT_TRUE(at::equal(buffers[2].second, at::tensor({1e308, mean}, at::kDouble)));
      EXPECT_TRUE(at::equal(buffers[3].second,
                            at::tensor({static_cast<double>(-kInf), mean}).to(at::kFloat)));
    }
  }
}

// One element of one worker differs in its last bit.
TEST(AverageOfBuffers, SeesTheSmallestDifference) {
  const float above = std::nextafter(1.0F, 2.0F);
  const auto averages = average_of(2, [&](int rank) {
    const at::Tensor buffer = at::ones({1001}, at::kDouble);
    if (rank == 1) buffer[1000].fill_(above);
    return NamedTensors{{"b", buffer}};
  });
  for (const NamedTensors& buffers : averages) {
    EXPECT_EQ(buffers[0].second[1000].item<double>(), (1 + static_cast<double>(above)) / 2);
  }
}

TEST(AverageOfParameters, DoesNotOverflowInTheSum) {
  const float large = std::ldexp(1.5F, 127);  // so few bits that sums of it are exact
  for (const int workers : {2, 3, 4}) {
    const auto averages = testing::run_workers(workers, [&](const testing::Worker& world) {
      const at::Tensor bucket = at::full({4}, large);
      bucket[1].fill_(world->rank());
      GlobalAverage average(world, {bucket}, {}, {});
      average.average(/*keep_backup=*/false, /*return_distance=*/false);
      return bucket;
    });
    for (const at::Tensor& bucket : averages) {
      EXPECT_EQ(bucket[0].item<float>(), large);
      EXPECT_EQ(bucket[1].item<float>(), static_cast<float>(workers - 1) / 2);
    }
  }
}

// Of ordinary numbers the bits are those of sum / count.
TEST(AverageOfParameters, IsTheSumDividedOnce) {
  for (const int workers : {2, 3, 5, 7}) {
    const MeanFactors factors = mean_factors(workers);
    at::Tensor sum = at::zeros({1000});
    at::Tensor scaled = at::zeros({1000});
    for (int rank = 0; rank < workers; ++rank) {
      const at::Tensor x = testing::scattered({1000}, rank).to(at::kFloat);
      sum.add_(x);
      scaled.add_(x.mul(factors.addend));
    }
    EXPECT_TRUE(at::equal(scaled.div_(factors.divisor), sum.div_(workers))) << workers;
  }
}

// 1 + 2^-11 is halfway between two numbers of float16; a little more is lost in float32.
TEST(CopyRoundedOnce, DoesNotRoundToFloat32First) {
  const double little = std::ldexp(1.0, -40);
  const double tie = 1 + std::ldexp(1.0, -11);
  const at::Tensor half = at::empty({6}, at::kHalf);
  copy_rounded_once(half, at::tensor({tie + little, tie, tie - little, -tie - little, 1e30,
                                      static_cast<double>(-kInf)},
                                     at::kDouble));
  const double up = 1 + std::ldexp(1.0, -10);
  EXPECT_TRUE(at::equal(
      half.to(at::kDouble),
      at::tensor({up, 1.0, 1.0, -up, static_cast<double>(kInf), static_cast<double>(-kInf)},
                 at::kDouble)));
  const at::Tensor brain = at::empty({}, at::kBFloat16);
  copy_rounded_once(brain, at::scalar_tensor(1 + std::ldexp(1.0, -8) + little, at::kDouble));
  EXPECT_EQ(brain.item<double>(), 1 + std::ldexp(1.0, -7));
  const at::Tensor single = at::empty({}, at::kFloat);
  copy_rounded_once(single, at::scalar_tensor(0.1, at::kDouble));
  EXPECT_EQ(single.item<float>(), 0.1F);
}

}  // namespace
}  // namespace decent
