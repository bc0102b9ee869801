#include "decent/comm/control/farewell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "decent/comm/lost_workers.h"

namespace decent {
namespace {

using ::testing::ElementsAre;

// The agreements of all workers, as if every message arrived at once.
class FarewellTest : public ::testing::Test {
 protected:
  explicit FarewellTest(int workers = 4) {
    for (int rank = 0; rank < workers; ++rank)
      of_.emplace_back(rank, static_cast<std::size_t>(workers));
  }

  // Worker `who` has begun step `step` and learns that `lost` is lost. Tells `others`.
  void learns(int who, int lost, std::int64_t step, const std::vector<int>& others,
              LossKind kind = LossKind::gone) {
    const auto claim = of(who).lose(lost, kind, "lost", step);
    if (!claim) return;
    for (const int other : others) of_[static_cast<std::size_t>(other)].claims(who, *claim);
  }

  Farewell& of(int rank) { return of_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<Farewell> of_;
};

TEST_F(FarewellTest, TheLastStepIsTheHighestThatAnyoneWhoIsLeftHasBegun) {
  learns(0, 2, 7, {1, 3});
  EXPECT_TRUE(of(0).begun());
  EXPECT_FALSE(of(0).settled());
  learns(1, 2, 9, {0, 3});
  EXPECT_FALSE(of(0).settled());
  learns(3, 2, 8, {0, 1});
  for (const int rank : {0, 1, 3}) {
    ASSERT_TRUE(of(rank).settled());
    EXPECT_EQ(of(rank).last_step(), 9);
    EXPECT_EQ(of(rank).speaker(), 0);
  }
}

// The connection between workers 0 and 1 was cut. The others tell both, and both end.
TEST_F(FarewellTest, SilentWorkersThatHaveEndedAreNoOtherPart) {
  for (const int lost : {0, 1}) learns(2, lost, 5, {3}, LossKind::silent);
  EXPECT_FALSE(of(2).saves());
  of(2).is_gone(0);
  EXPECT_TRUE(of(2).saves());
  of(2).is_gone(1);
  EXPECT_TRUE(of(2).saves());
}

// Worker 1 has begun step 9 and is lost before worker 3 hears of that; worker 0 has, and begins it.
TEST_F(FarewellTest, AFurtherLossTakesBackNoStepThatWasBegun) {
  learns(0, 2, 7, {1, 3});
  learns(1, 2, 9, {0});
  learns(3, 2, 8, {0, 1});
  ASSERT_TRUE(of(0).settled());
  EXPECT_EQ(of(0).last_step(), 9);
  EXPECT_FALSE(of(3).settled());
  learns(3, 1, 8, {0});
  EXPECT_FALSE(of(0).settled());
  learns(0, 1, 9, {3});
  for (const int rank : {0, 3}) {
    ASSERT_TRUE(of(rank).settled());
    EXPECT_EQ(of(rank).last_step(), 9);
  }
}

TEST_F(FarewellTest, ALossThatIsKnownChangesNothing) {
  learns(0, 2, 7, {});
  EXPECT_FALSE(of(0).lose(2, LossKind::silent, "again", 8).has_value());
  EXPECT_EQ(of(0).reason(), "lost");
  EXPECT_TRUE(of(0).saves());
}

TEST_F(FarewellTest, NamesThoseWhoHaveNotArrived) {
  learns(0, 2, 7, {});
  of(0).arrives(0);
  EXPECT_THAT(of(0).late(), ElementsAre(1, 3));
}

TEST_F(FarewellTest, OfTwoHalvesTheOneWithTheLowestRankSaves) {
  for (const int lost : {2, 3}) {
    learns(0, lost, 5, {1}, LossKind::silent);
    learns(1, lost, 5, {0}, LossKind::silent);
  }
  for (const int lost : {0, 1}) {
    learns(2, lost, 5, {3}, LossKind::silent);
    learns(3, lost, 5, {2}, LossKind::silent);
  }
  EXPECT_TRUE(of(0).saves() && of(1).saves());
  EXPECT_FALSE(of(2).saves() || of(3).saves());
}

TEST_F(FarewellTest, OfTwoPartsTheLargerOneSaves) {
  learns(1, 0, 5, {}, LossKind::silent);
  EXPECT_TRUE(of(1).saves());
  for (const int lost : {1, 2, 3}) learns(0, lost, 5, {}, LossKind::silent);
  EXPECT_FALSE(of(0).saves());
}

// Nobody else can save what a process that has ended knew.
TEST_F(FarewellTest, TheLastOneSavesIfTheOthersHaveEnded) {
  for (const int lost : {0, 1, 2}) learns(3, lost, 5, {});
  EXPECT_TRUE(of(3).saves());
  EXPECT_TRUE(of(3).settled());
  EXPECT_EQ(of(3).speaker(), 3);
}

// ---- the operations that take part
// ----------------------------------------------------------------

TEST(LostWorkers, GivesUpOperationsOfLostWorkersAlone) {
  LostWorkers lost;
  const auto run = [&](const LostWorkers::Ranks& ranks) {
    return unless_lost(&lost, ranks, [] { return 5; });
  };
  EXPECT_EQ(run({1, 2}), 5);
  lost.add(2);
  EXPECT_EQ(run({0, 1}), 5);
  EXPECT_THROW(run({1, 2}), GivenUp);
}

TEST(LostWorkers, AnErrorOfALostWorkerIsOneOfGivingUp) {
  LostWorkers lost;
  const auto fail = [&](const LostWorkers* known) {
    unless_lost(known, {1}, [&] {
      lost.add(1);
      throw PeerLost("closed");
    });
  };
  EXPECT_THROW(fail(&lost), GivenUp);
  try {
    fail(nullptr);
  } catch (const GivenUp&) {
    ADD_FAILURE() << "nobody goes on without a lost worker";
  } catch (const PeerLost& error) {
    EXPECT_STREQ(error.what(), "closed");
  }
}

TEST(LostWorkers, TellsThoseWhoWatchOnce) {
  LostWorkers lost;
  int told = 0;
  {
    const LostWorkers::Watch watch(lost, {1, 2}, [&] { ++told; });
    lost.add(3);
    EXPECT_EQ(told, 0);
    lost.add(2);
    lost.add(1);
    EXPECT_EQ(told, 1);
  }
  const LostWorkers::Watch late(lost, {2}, [&] { ++told; });
  EXPECT_EQ(told, 2);
}

}  // namespace
}  // namespace decent
