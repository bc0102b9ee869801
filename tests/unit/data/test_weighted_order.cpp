#include "decent/data/weighted_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <thread>

#include "decent/data/sampler.h"

namespace decent {
namespace {

using Drawn = std::vector<std::int64_t>;

constexpr std::uint64_t kSeed = 11;
const std::vector<double> kSevenWeights = {0, 1, 2, 0.5, 3, 1e-3, 4};
constexpr double kSumOfSeven = 10.501;

// The samples at the first positions of an epoch.
Drawn first_of(const WeightedOrder& order, std::int64_t epoch, std::int64_t count) {
  Drawn drawn(static_cast<std::size_t>(count));
  std::iota(drawn.begin(), drawn.end(), 0);
  order.draw(epoch, drawn);
  return drawn;
}

double square(double x) { return x * x; }

TEST(WeightedOrder, DrawsInProportionToTheWeights) {
  constexpr int kDraws = 1'000'000;
  const WeightedOrder order(kSevenWeights, /*replacement=*/true, kSeed);
  std::vector<double> counts(kSevenWeights.size());
  for (const std::int64_t sample : first_of(order, 0, kDraws))
    ++counts[static_cast<std::size_t>(sample)];
  EXPECT_EQ(counts[0], 0);
  double chi_square = 0;
  for (std::size_t i = 1; i < counts.size(); ++i) {
    const double expected = kDraws * kSevenWeights[i] / kSumOfSeven;
    chi_square += square(counts[i] - expected) / expected;
  }
  // scipy.stats.chi2.isf(1e-6, 5): a right sampler exceeds it with one seed of a million.
  EXPECT_LT(chi_square, 35.9);
}

// P(first i, then j) = w_i / W * w_j / (W - w_i), as torch.multinomial draws.
TEST(WeightedOrder, DrawsWithoutReplacementInProportionToTheWeightsThatAreLeft) {
  constexpr int kEpochs = 100'000;
  const WeightedOrder order(kSevenWeights, /*replacement=*/false, kSeed);
  const std::size_t n = kSevenWeights.size();
  std::vector<double> counts(n * n);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const Drawn pair = first_of(order, epoch, 2);
    ++counts[static_cast<std::size_t>(pair[0]) * n + static_cast<std::size_t>(pair[1])];
  }
  double chi_square = 0;
  int pairs = 0;
  for (std::size_t i = 1; i < n; ++i) {
    for (std::size_t j = 1; j < n; ++j) {
      const double share =
          kSevenWeights[i] / kSumOfSeven * kSevenWeights[j] / (kSumOfSeven - kSevenWeights[i]);
      const double expected = kEpochs * share;
      if (i == j || expected < 5) continue;  // the approximation by chi-square needs 5
      chi_square += square(counts[i * n + j] - expected) / expected;
      ++pairs;
    }
  }
  EXPECT_EQ(pairs, 21);
  // scipy.stats.chi2.isf(1e-6, 21): at most 21 degrees of freedom.
  EXPECT_LT(chi_square, 67.2);
}

TEST(WeightedOrder, DrawsEachSampleOnceWithoutReplacement) {
  const WeightedOrder order(kSevenWeights, /*replacement=*/false, kSeed);
  EXPECT_EQ(order.never_drawn(), 1);
  ASSERT_EQ(order.epoch_size(), 6);
  std::set<Drawn> orders;
  for (const std::int64_t epoch : {0, 1, 2, 0}) {
    Drawn drawn = first_of(order, epoch, 6);
    orders.insert(drawn);
    std::sort(drawn.begin(), drawn.end());
    EXPECT_EQ(drawn, (Drawn{1, 2, 3, 4, 5, 6}));
  }
  EXPECT_EQ(orders.size(), 3U);  // each epoch has another order, and always the same
}

TEST(WeightedOrder, KeepsTheLengthOfAnEpochWithReplacement) {
  EXPECT_EQ(WeightedOrder(kSevenWeights, /*replacement=*/true, kSeed).epoch_size(), 7);
}

// Only ratios of weights count, even if their sum overflows. (Scaled weights of 1.7e308 and of 1
// have other last bits; that a draw lies there has a chance of about 2^-60.)
TEST(WeightedOrder, TakesWeightsOfAnySize) {
  const std::vector<double> ones(10, 1);
  for (const bool replacement : {true, false}) {
    const WeightedOrder order(ones, replacement, kSeed);
    for (const double weight : {1.7e308, 5e-324}) {
      const WeightedOrder other(std::vector<double>(10, weight), replacement, kSeed);
      EXPECT_EQ(first_of(other, 3, 10), first_of(order, 3, 10)) << weight;
    }
  }
}

TEST(WeightedOrder, CanDrawTheLeastWeight) {
  const std::vector<double> weights = {1e300, 1e-300};
  EXPECT_EQ(first_of(WeightedOrder(weights, /*replacement=*/false, kSeed), 0, 2), (Drawn{0, 1}));
}

// As threads that read ahead do at the end of an epoch.
TEST(WeightedOrder, GivesAllThreadsTheSame) {
  const std::vector<double> weights(500, 2);
  const WeightedOrder shared(weights, /*replacement=*/false, kSeed);
  std::vector<std::vector<Drawn>> drawn(4);
  std::vector<std::thread> threads;
  for (auto& own : drawn) {
    threads.emplace_back([&] {
      for (std::int64_t i = 0; i < 40; ++i) own.push_back(first_of(shared, i / 4 + i % 3, 500));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::int64_t i = 0; i < 40; ++i) {
    const WeightedOrder alone(weights, /*replacement=*/false, kSeed);
    const Drawn expected = first_of(alone, i / 4 + i % 3, 500);
    for (const auto& own : drawn) EXPECT_EQ(own[static_cast<std::size_t>(i)], expected);
  }
}

// ---- as the order of training -----------------------------------------------------------------

BatchPlan plan_of(const std::shared_ptr<const WeightedOrder>& order, int workers, int rank) {
  BatchPlan plan{.samples = order->epoch_size(), .batch_size = 2};
  plan.member = {.workers = everyone(workers), .rank = rank};
  plan.weighted = order;
  return plan;
}

// The samples that all workers take in update `update`, by their positions.
Drawn taken(std::vector<BatchPlan> plans, std::int64_t update) {
  Drawn all;
  std::vector<Drawn> batches;
  for (const BatchPlan& plan : plans) batches.push_back(Sampler(plan).micro_batch(update, 0));
  for (std::size_t i = 0; i < batches.front().size(); ++i)
    for (const Drawn& batch : batches) all.push_back(batch[i]);
  return all;
}

TEST(WeightedSampler, TakesTheSameSamplesWhateverTheWorkersAndResumes) {
  std::vector<double> weights(37);
  std::iota(weights.begin(), weights.end(), 0);
  for (const bool replacement : {true, false}) {
    const auto order = std::make_shared<const WeightedOrder>(weights, replacement, kSeed);
    for (const int workers : {1, 2, 3, 5}) {
      const std::int64_t each = 2 * workers;
      const std::int64_t per_epoch = order->epoch_size() / each;
      for (std::int64_t update = 0; update < 2 * per_epoch; ++update) {
        const DataPosition position{update / per_epoch, update % per_epoch * each};
        Drawn expected(static_cast<std::size_t>(each));
        std::iota(expected.begin(), expected.end(), position.consumed);
        order->draw(position.epoch, expected);
        std::vector<BatchPlan> whole;
        std::vector<BatchPlan> resumed;  // by these workers, after any others
        for (int rank = 0; rank < workers; ++rank) {
          whole.push_back(plan_of(order, workers, rank));
          resumed.push_back(plan_of(order, workers, rank));
          resumed.back().first_update = 1000;
          resumed.back().first_position = position;
        }
        EXPECT_EQ(taken(whole, update), expected) << workers << " workers, update " << update;
        EXPECT_EQ(taken(resumed, 1000), expected) << workers << " workers, update " << update;
      }
    }
  }
}

}  // namespace
}  // namespace decent
