#include "decent/data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <set>

#include "decent/core/error.h"
#include "decent/data/permutation.h"

namespace decent {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Indices = std::vector<std::int64_t>;

constexpr std::int64_t kSamples = 103;
constexpr std::int64_t kBatch = 3;

BatchPlan plan_of(int workers, int rank, std::int64_t accumulation, bool shuffle) {
  return {kSamples, kBatch, {everyone(workers), rank}, accumulation, shuffle, 11};
}

// The data order as documented, spelt out: the sample at a position of an epoch.
std::int64_t sample_at(std::int64_t epoch, std::int64_t position, bool shuffle) {
  if (!shuffle) return position;
  const KeyedPermutation permutation(kSamples, 11, static_cast<std::uint64_t>(epoch));
  return static_cast<std::int64_t>(permutation(static_cast<std::uint64_t>(position)));
}

TEST(Sampler, DealsOutAnExampleByHand) {
  // 2 workers, batches of 3, 2 micro-batches: updates of 12 samples, 103 / 12 = 8 of them an epoch.
  const Sampler rank0(plan_of(2, 0, 2, false));
  const Sampler rank1(plan_of(2, 1, 2, false));
  EXPECT_EQ(rank0.updates_per_epoch(), 8);
  EXPECT_EQ(rank0.update_samples(), 12);
  EXPECT_EQ(rank0.micro_batch(0, 0), (Indices{0, 2, 4}));
  EXPECT_EQ(rank1.micro_batch(0, 0), (Indices{1, 3, 5}));
  EXPECT_EQ(rank0.micro_batch(0, 1), (Indices{6, 8, 10}));
  EXPECT_EQ(rank1.micro_batch(0, 1), (Indices{7, 9, 11}));
  EXPECT_EQ(rank0.micro_batch(7, 1), (Indices{90, 92, 94}));
  EXPECT_EQ(rank0.micro_batch(8, 0), (Indices{0, 2, 4}));  // the next epoch: 96 .. 102 were dropped
}

TEST(Sampler, GivesEachUpdateTheNextSamplesOfItsEpoch) {
  for (const bool shuffle : {false, true}) {
    for (const int workers : {1, 2, 3, 4}) {
      for (const std::int64_t accumulation : {1, 2}) {
        const std::int64_t share = workers * kBatch;
        const std::int64_t per_epoch = kSamples / (accumulation * share);
        for (std::int64_t update = 0; update < 2 * per_epoch + 1; ++update) {
          Indices taken(static_cast<std::size_t>(accumulation * share));
          for (int rank = 0; rank < workers; ++rank) {
            const Sampler sampler(plan_of(workers, rank, accumulation, shuffle));
            ASSERT_EQ(sampler.updates_per_epoch(), per_epoch);
            for (std::int64_t a = 0; a < accumulation; ++a) {
              const Indices batch = sampler.micro_batch(update, a);
              ASSERT_EQ(batch.size(), static_cast<std::size_t>(kBatch));
              for (std::int64_t i = 0; i < kBatch; ++i) {
                taken[static_cast<std::size_t>(a * share + rank + i * workers)] =
                    batch[static_cast<std::size_t>(i)];
              }
            }
          }
          const std::int64_t epoch = update / per_epoch;
          const std::int64_t first = update % per_epoch * accumulation * share;
          for (std::size_t i = 0; i < taken.size(); ++i) {
            ASSERT_EQ(taken[i], sample_at(epoch, first + static_cast<std::int64_t>(i), shuffle))
                << workers << " workers, accumulation " << accumulation << ", update " << update;
          }
        }
      }
    }
  }
}

TEST(Sampler, ShufflesEveryEpochAnew) {
  const Sampler sampler(plan_of(1, 0, 1, true));
  const std::int64_t per_epoch = sampler.updates_per_epoch();
  EXPECT_NE(sampler.micro_batch(0, 0), sampler.micro_batch(per_epoch, 0));
  std::set<std::int64_t> seen;
  for (std::int64_t update = 0; update < per_epoch; ++update) {
    for (std::int64_t index : sampler.micro_batch(update, 0)) {
      EXPECT_TRUE(seen.insert(index).second);
    }
  }
  EXPECT_EQ(seen.size(), 102U);
}

BatchPlan later_plan(int workers, int rank, std::int64_t update, DataPosition position) {
  BatchPlan plan = plan_of(workers, rank, 1, true);
  plan.first_update = update;
  plan.first_position = position;
  return plan;
}

TEST(Sampler, GoesOnInTheMiddleOfAnEpochWithOtherWorkers) {
  // After 15 samples of epoch 2 worker 1 of 2 takes positions 16, 18 and 20.
  const Sampler second_of_two(later_plan(2, 1, 40, {2, 15}));
  EXPECT_EQ(second_of_two.micro_batch(40, 0),
            (Indices{sample_at(2, 16, true), sample_at(2, 18, true), sample_at(2, 20, true)}));
  EXPECT_EQ(second_of_two.position(41), (DataPosition{2, 21}));
  // 103 - 15 samples are 14 more updates of 6; then an epoch of 17.
  EXPECT_EQ(second_of_two.position(53), (DataPosition{2, 93}));
  EXPECT_EQ(second_of_two.position(54), (DataPosition{3, 0}));
  EXPECT_EQ(second_of_two.position(54 + 17 + 2), (DataPosition{4, 12}));
  EXPECT_EQ(second_of_two.updates_until(3), 54);
  EXPECT_EQ(second_of_two.updates_until(5), 54 + 2 * 17);
  EXPECT_EQ(second_of_two.updates_until(2), 40);
  EXPECT_DOUBLE_EQ(second_of_two.epochs_done(54), 3.0);
  EXPECT_DOUBLE_EQ(second_of_two.epochs_done(40), 2 + 15.0 / 102);
}

TEST(Sampler, GoesOnAsIfItHadNeverStopped) {
  const Sampler whole(plan_of(2, 1, 1, true));
  for (std::int64_t update : {0, 1, 16, 17, 18, 34, 50}) {
    const Sampler later(later_plan(2, 1, update, whole.position(update)));
    for (std::int64_t u = update; u < update + 40; ++u) {
      ASSERT_EQ(later.micro_batch(u, 0), whole.micro_batch(u, 0)) << update << " " << u;
      ASSERT_EQ(later.position(u), whole.position(u)) << update << " " << u;
      ASSERT_EQ(later.epochs_done(u), static_cast<double>(u) / 17) << update << " " << u;
      ASSERT_EQ(later.epochs_done(u), whole.epochs_done(u)) << update << " " << u;
    }
    EXPECT_EQ(later.updates_until(9), whole.updates_until(9));
  }
}

TEST(Sampler, LeavesARestThatIsTooSmallForAnUpdate) {
  const Sampler sampler(later_plan(4, 0, 7, {1, 95}));  // 8 samples are left, an update takes 12
  EXPECT_EQ(sampler.position(7), (DataPosition{2, 0}));
  EXPECT_EQ(sampler.updates_until(2), 7);
}

TEST(Sampler, RefusesAPlaceBehindTheEnd) {
  EXPECT_THROW(Sampler(later_plan(1, 0, 7, {1, 104})), UserError);
}

TEST(Sampler, TakesASetOfExactlyOneUpdate) {
  const Sampler sampler({12, 3, {everyone(2), 1}, 2, false, 0});
  EXPECT_EQ(sampler.updates_per_epoch(), 1);
  EXPECT_EQ(sampler.micro_batch(5, 1), (Indices{7, 9, 11}));
}

TEST(Sampler, RefusesASetThatIsTooSmall) {
  try {
    Sampler({11, 3, {everyone(2), 0}, 2, true, 0});
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(),
                AllOf(HasSubstr("has 11 samples"), HasSubstr("takes 12"), HasSubstr("batch_size 3"),
                      HasSubstr("2 workers"), HasSubstr("grad_accumulation 2"),
                      HasSubstr("smaller batch size")));
  }
  EXPECT_THROW(Sampler({0, 1, {everyone(1), 0}, 1, true, 0}), UserError);
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max() / 2;
  EXPECT_THROW(Sampler({1000, kHuge, {everyone(4), 0}, kHuge, true, 0}), UserError);
}

// ---- batches of different sizes ----------------------------------------------------------------

BatchPlan plan_of(const std::vector<std::int64_t>& sizes, int rank, std::int64_t accumulation,
                  bool shuffle) {
  BatchPlan plan = plan_of(static_cast<int>(sizes.size()), rank, accumulation, shuffle);
  plan.batch_sizes = sizes;
  return plan;
}

// The positions that each worker takes of a micro-batch, in turns as at a table.
std::vector<Indices> dealt_in_turns(const std::vector<std::int64_t>& sizes) {
  std::vector<Indices> hands(sizes.size());
  std::int64_t next = 0;
  for (bool somebody_took = true; somebody_took;) {
    somebody_took = false;
    for (std::size_t place = 0; place < sizes.size(); ++place) {
      if (std::ssize(hands[place]) == sizes[place]) continue;
      hands[place].push_back(next++);
      somebody_took = true;
    }
  }
  return hands;
}

TEST(UnequalBatches, AreDealtOutAsAnExampleByHand) {
  // Updates of 2 x 8 samples, 103 / 16 = 6 of them an epoch.
  const Sampler large(plan_of({6, 2}, 0, 2, false));
  const Sampler small(plan_of({6, 2}, 1, 2, false));
  EXPECT_EQ(large.updates_per_epoch(), 6);
  EXPECT_EQ(large.update_samples(), 16);
  EXPECT_EQ(large.micro_batch(0, 0), (Indices{0, 2, 4, 5, 6, 7}));
  EXPECT_EQ(small.micro_batch(0, 0), (Indices{1, 3}));
  EXPECT_EQ(large.micro_batch(1, 1), (Indices{24, 26, 28, 29, 30, 31}));
  EXPECT_EQ(small.micro_batch(6, 0), (Indices{1, 3}));  // the next epoch: 96 .. 102 were dropped
  EXPECT_EQ(large.weight(), 1.5);
  EXPECT_EQ(small.weight(), 0.5);
}

TEST(UnequalBatches, TakeEachSampleOfAnEpochOnce) {
  const std::vector<std::vector<std::int64_t>> all = {{1, 5},    {5, 1},       {2, 3, 2},
                                                      {4, 4, 1}, {1, 2, 3, 4}, {7, 1, 7, 2}};
  for (const std::vector<std::int64_t>& sizes : all) {
    const std::vector<Indices> hands = dealt_in_turns(sizes);
    const std::int64_t share = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
    for (const std::int64_t accumulation : {1, 2}) {
      const std::int64_t per_epoch = kSamples / (accumulation * share);
      std::set<std::int64_t> seen;
      double weights = 0;
      for (std::size_t place = 0; place < sizes.size(); ++place) {
        const Sampler sampler(plan_of(sizes, static_cast<int>(place), accumulation, true));
        ASSERT_EQ(sampler.updates_per_epoch(), per_epoch);
        ASSERT_EQ(sampler.batch_sizes(), sizes);
        weights += sampler.weight();
        for (std::int64_t update = 0; update < per_epoch; ++update) {
          for (std::int64_t a = 0; a < accumulation; ++a) {
            const std::int64_t begin = (update * accumulation + a) * share;
            Indices expected = hands[place];
            for (std::int64_t& index : expected) index = sample_at(0, begin + index, true);
            ASSERT_EQ(sampler.micro_batch(update, a), expected) << "place " << place;
            for (const std::int64_t index : expected) ASSERT_TRUE(seen.insert(index).second);
          }
        }
      }
      EXPECT_EQ(std::ssize(seen), per_epoch * accumulation * share);
      // Each weight is rounded twice, and their sum once for each of up to 4.
      EXPECT_NEAR(weights, static_cast<double>(sizes.size()), 1e-14);
    }
  }
}

TEST(UnequalBatches, OfOneSizeAreTheUsualOnes) {
  for (const int workers : {1, 3, 49}) {  // 1 / 49 x 49 is not 1 in float64
    for (const int rank : {0, workers - 1}) {
      const Sampler usual({1000, 3, {everyone(workers), rank}, 2, true, 11});
      BatchPlan plan{1000, 1, {everyone(workers), rank}, 2, true, 11};
      plan.batch_sizes.assign(static_cast<std::size_t>(workers), 3);
      const Sampler named(plan);
      EXPECT_EQ(named.weight(), 1.0);
      EXPECT_EQ(usual.weight(), 1.0);
      for (std::int64_t update = 0; update < 3; ++update)
        EXPECT_EQ(named.micro_batch(update, 1), usual.micro_batch(update, 1));
    }
  }
}

// After 15 samples with three workers, two go on.
TEST(UnequalBatches, GoOnInTheMiddleOfAnEpochWithOtherWorkers) {
  BatchPlan plan = plan_of({4, 1}, 0, 1, true);
  plan.first_update = 3;
  plan.first_position = {0, 15};
  const Sampler sampler(plan);
  EXPECT_EQ(sampler.micro_batch(3, 0), (Indices{sample_at(0, 15, true), sample_at(0, 17, true),
                                                sample_at(0, 18, true), sample_at(0, 19, true)}));
  EXPECT_EQ(sampler.position(4), (DataPosition{0, 20}));
  EXPECT_EQ(sampler.updates_until(1), 3 + 17);  // (103 - 15) / 5
}

TEST(UnequalBatches, AreTooLargeForASmallSet) {
  try {
    BatchPlan plan = plan_of({6, 2}, 0, 2, false);
    plan.samples = 15;
    Sampler{plan};
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("has 15 samples, but one update takes 16: batch sizes of "
                                        "2 workers, 8 together, x grad_accumulation 2"));
  }
}

// ---- members ------------------------------------------------------------------------------------

// Worker 1 of the 4 that were started is not there any more.
const Membership kWithoutOne = {.epoch = 1, .ranks = {0, 2, 3}};

TEST(Sampler, DealsToTheMembersByTheirPlaces) {
  for (const bool shuffle : {false, true}) {
    for (int place = 0; place < 3; ++place) {
      const int rank = kWithoutOne.ranks.at(static_cast<std::size_t>(place));
      BatchPlan plan = plan_of(3, place, 2, shuffle);
      const Sampler of_three(plan);
      plan.member.workers = kWithoutOne;
      plan.member.rank = rank;
      const Sampler of_members(plan);
      EXPECT_EQ(of_members.update_samples(), of_three.update_samples());
      for (std::int64_t update = 0; update < 2 * of_three.updates_per_epoch(); ++update) {
        for (const std::int64_t a : {0, 1}) {
          ASSERT_EQ(of_members.micro_batch(update, a), of_three.micro_batch(update, a))
              << "rank " << rank << ", update " << update;
        }
      }
    }
  }
}

TEST(Sampler, DealsToMembersOnly) {
  BatchPlan plan = plan_of(3, 1, 1, false);
  plan.member.workers = kWithoutOne;
  EXPECT_THROW(Sampler{plan}, std::logic_error);
}

TEST(Evaluation, IsDealtToTheMembersByTheirPlaces) {
  for (const std::int64_t samples : {0, 1, 2, 10, 103}) {
    for (int place = 0; place < 3; ++place) {
      const int rank = kWithoutOne.ranks.at(static_cast<std::size_t>(place));
      EXPECT_EQ(evaluation_size(samples, {kWithoutOne, rank}),
                evaluation_size(samples, {everyone(3), place}));
      EXPECT_EQ(evaluation_indices(samples, {kWithoutOne, rank}, 1, 20),
                evaluation_indices(samples, {everyone(3), place}, 1, 20));
    }
  }
}

TEST(Evaluation, CoversEachSampleOnceWhateverTheWorkers) {
  for (const std::int64_t samples : {0, 1, 5, 64, 103}) {
    for (const int workers : {1, 2, 3, 4, 7, 200}) {
      Indices times(static_cast<std::size_t>(samples));
      for (int rank = 0; rank < workers; ++rank) {
        constexpr std::int64_t kEvalBatch = 4;
        const std::int64_t size = evaluation_size(samples, {everyone(workers), rank});
        std::int64_t read = 0;
        for (std::int64_t first = 0; first < size; first += kEvalBatch) {
          const Indices batch =
              evaluation_indices(samples, {everyone(workers), rank}, first, kEvalBatch);
          ASSERT_EQ(batch.size(), static_cast<std::size_t>(std::min(kEvalBatch, size - first)));
          for (std::int64_t index : batch) ++times.at(static_cast<std::size_t>(index));
          read += static_cast<std::int64_t>(batch.size());
        }
        EXPECT_EQ(read, size);
      }
      EXPECT_EQ(times, Indices(times.size(), 1))
          << samples << " samples, " << workers << " workers";
    }
  }
}

TEST(Evaluation, IsStrided) {
  EXPECT_EQ(evaluation_indices(10, {everyone(3), 1}, 0, 2), (Indices{1, 4}));
  EXPECT_EQ(evaluation_indices(10, {everyone(3), 1}, 2, 2), (Indices{7}));
  EXPECT_EQ(evaluation_indices(10, {everyone(3), 1}, 4, 2), Indices{});
  EXPECT_EQ(evaluation_size(2, {everyone(4), 3}), 0);
}

}  // namespace
}  // namespace decent
