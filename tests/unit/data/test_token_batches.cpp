// Batches measured in tokens: their samples by hand, what holds for any lengths, and how they are
// dealt out.

#include "decent/data/token_batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "../support/refusal.h"
#include "decent/data/sampler.h"

namespace decent {
namespace {

using ::testing::ElementsAre;
using testing::refusal;
using Indices = std::vector<std::int64_t>;
using Lengths = std::vector<std::int32_t>;

Indices batch(const TokenBatches& batches, std::int64_t number) {
  const auto samples = batches.batch(number);
  return {samples.begin(), samples.end()};
}

Lengths some_lengths(std::size_t samples) {
  std::mt19937 random(3);
  Lengths lengths(samples);
  for (std::int32_t& length : lengths) length = static_cast<std::int32_t>(1 + random() % 40);
  return lengths;
}

TEST(TokenBatches, TakeSamplesAsTheyComeWithoutASeed) {
  const TokenBatches batches(Lengths{3, 1, 2, 5, 5, 1}, 10, std::nullopt);
  ASSERT_EQ(batches.size(), 3);
  EXPECT_THAT(batch(batches, 0), ElementsAre(0, 1, 2));  // 4 x 5 tokens would be too many
  EXPECT_THAT(batch(batches, 1), ElementsAre(3, 4));
  EXPECT_THAT(batch(batches, 2), ElementsAre(5));
  EXPECT_EQ(batches.mean_samples(), 2);
  EXPECT_THAT(batches.longest(), ElementsAre(3, 4));
}

// Which samples of one length share a batch is random; the lengths are not.
TEST(TokenBatches, TakeSamplesByLength) {
  const Lengths lengths = {3, 1, 2, 5, 5, 1};
  const TokenBatches batches(lengths, 10, 1);
  std::vector<Lengths> found;
  for (std::int64_t i = 0; i < batches.size(); ++i) {
    Lengths& its = found.emplace_back();
    for (const std::int64_t sample : batches.batch(i))
      its.push_back(lengths[static_cast<std::size_t>(sample)]);
  }
  EXPECT_EQ(batches.longest().front(), 0);  // of the two batches with a 5, the larger one
  EXPECT_THAT(found, ElementsAre(Lengths{1, 1, 2}, Lengths{3, 5}, Lengths{5}));
}

TEST(TokenBatches, HaveEachSampleOnceAndAreAsLargeAsTheyMayBe) {
  const Lengths lengths = some_lengths(5000);
  for (const std::int64_t tokens : {40, 41, 1000, 1'000'000}) {
    const TokenBatches batches(lengths, tokens, 7);
    std::set<std::int64_t> seen;
    for (std::int64_t i = 0; i < batches.size(); ++i) {
      const Indices samples = batch(batches, i);
      const std::int64_t longest = lengths[static_cast<std::size_t>(samples.back())];
      for (const std::int64_t sample : samples) {
        EXPECT_TRUE(seen.insert(sample).second);
        EXPECT_LE(lengths[static_cast<std::size_t>(sample)], longest);
      }
      EXPECT_LE(std::ssize(samples) * longest, tokens);
      if (i + 1 == batches.size()) continue;
      const auto next = static_cast<std::size_t>(batches.batch(i + 1).front());
      EXPECT_GE(lengths[next], longest);
      EXPECT_GT((std::ssize(samples) + 1) * lengths[next], tokens);
    }
    EXPECT_EQ(seen.size(), lengths.size());
  }
}

TEST(TokenBatches, DependOnTheSeedAlone) {
  const Lengths lengths = some_lengths(500);
  const TokenBatches one(lengths, 200, 1);
  const TokenBatches again(lengths, 200, 1);
  const TokenBatches other(lengths, 200, 2);
  ASSERT_EQ(one.size(), other.size());
  bool differ = false;
  for (std::int64_t i = 0; i < one.size(); ++i) {
    EXPECT_EQ(batch(one, i), batch(again, i));
    differ = differ || batch(one, i) != batch(other, i);
  }
  EXPECT_TRUE(differ);
}

BatchPlan plan_of(const std::shared_ptr<const TokenBatches>& batches, int workers, int rank) {
  return {.samples = 400,
          .batch_size = 32,  // does not count
          .member = {everyone(workers), rank},
          .accumulation = 2,
          .seed = 5,
          .token_batches = batches};
}

// Batches are what shuffling moves: position p of an epoch has the batch there, whoever takes it.
TEST(TokenBatches, AreDealtOutInPlaceOfSamples) {
  const auto batches = std::make_shared<const TokenBatches>(some_lengths(400), 100, 5);
  const std::int64_t per_epoch = batches->size() / 6;
  for (const std::int64_t epoch : {0, 1}) {
    std::multiset<Indices> taken;
    for (int rank = 0; rank < 3; ++rank) {
      const Sampler sampler(plan_of(batches, 3, rank));
      ASSERT_EQ(sampler.updates_per_epoch(), per_epoch);
      EXPECT_EQ(sampler.update_samples(), 6);
      EXPECT_DOUBLE_EQ(sampler.mean_update_samples(),
                       6 * 400.0 / static_cast<double>(batches->size()));
      EXPECT_EQ(sampler.left_out(), batches->size() % 6);
      EXPECT_EQ(sampler.weight(), 1);
      for (std::int64_t update = 0; update < per_epoch; ++update) {
        for (const std::int64_t a : {0, 1})
          taken.insert(sampler.micro_batch(epoch * per_epoch + update, a));
      }
    }
    std::multiset<Indices> all;
    for (std::int64_t i = 0; i < batches->size(); ++i) all.insert(batch(*batches, i));
    EXPECT_EQ(std::ssize(taken), 6 * per_epoch);
    EXPECT_TRUE(std::ranges::includes(all, taken));
  }
}

// Two workers end in the middle of an epoch, and three take the batches that they left.
TEST(TokenBatches, AreTakenOnceWhenTheNumberOfWorkersChanges) {
  const auto batches = std::make_shared<const TokenBatches>(some_lengths(400), 100, 5);
  std::multiset<Indices> taken;
  const Sampler before(plan_of(batches, 2, 0));
  const std::int64_t updates = before.updates_per_epoch() / 2;
  for (int rank = 0; rank < 2; ++rank) {
    const Sampler sampler(plan_of(batches, 2, rank));
    for (std::int64_t update = 0; update < updates; ++update)
      for (const std::int64_t a : {0, 1}) taken.insert(sampler.micro_batch(update, a));
  }
  for (int rank = 0; rank < 3; ++rank) {
    BatchPlan plan = plan_of(batches, 3, rank);
    plan.first_update = updates;
    plan.first_position = before.position(updates);
    const Sampler sampler(plan);
    for (std::int64_t update = updates; update < sampler.updates_until(1); ++update)
      for (const std::int64_t a : {0, 1}) taken.insert(sampler.micro_batch(update, a));
  }
  EXPECT_GT(std::ssize(taken), batches->size() - 6);
  EXPECT_EQ(std::set(taken.begin(), taken.end()).size(), taken.size());
}

TEST(TokenBatches, AreRefusedIfThereAreTooFew) {
  const auto batches = std::make_shared<const TokenBatches>(Lengths(9, 5), 15, 5);
  BatchPlan plan = plan_of(batches, 2, 0);
  plan.remedy = "do this";
  EXPECT_EQ(refusal([&] { Sampler{plan}; }),
            "the training data has 3 batches, but one update takes 4: one for each of 2 workers x "
            "grad_accumulation 2\ndo this");
}

}  // namespace
}  // namespace decent
