// Who counts as lost, on a clock that the tests move.

#include "decent/comm/control/liveness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

namespace decent {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Worker `rank` of four on node0 .. node3; a timeout of 8 s makes a beat of 1 s.
struct Watch {
  explicit Watch(int rank = 0)
      : liveness(rank, {"node0", "node1", "node2", "node3"}, own, 8s, "the limit", now) {}

  // So much time passes, with a check every beat, while the `beating` are heard of.
  Liveness::Findings pass(std::chrono::seconds time, const std::vector<std::size_t>& beating) {
    Liveness::Findings all;
    for (std::chrono::seconds passed = 0s; passed < time; passed += 1s) {
      now += 1s;
      for (const std::size_t rank : beating) liveness.heard(rank, now);
      Liveness::Findings found = liveness.check(now);
      for (Loss& loss : found.silent) all.silent.push_back(std::move(loss));
      if (found.hanging) all.hanging = found.hanging;
    }
    return all;
  }

  OwnProgress own;
  Liveness::Clock::time_point now{1000s};
  Liveness liveness;
};

// ---- silence ------------------------------------------------------------------------------------

TEST(Liveness, FindsASilentWorkerOnce) {
  Watch watch;
  watch.liveness.is_at(2, {.step = 5, .turn = 1, .operation = Operation::forward});
  EXPECT_THAT(watch.pass(7s, {1, 3}).silent, IsEmpty());
  const auto found = watch.pass(1s, {1, 3}).silent;
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].rank, 2);
  EXPECT_EQ(
      found[0].message(),
      "lost worker 2 on 'node2': silent for 8 s (the limit). It was last heard of 8 s ago, in "
      "step 5, in forward");
  EXPECT_THAT(watch.pass(20s, {1, 3}).silent, IsEmpty());
}

TEST(Liveness, CountsSilenceFromTheLastThingHeard) {
  Watch watch;
  EXPECT_THAT(watch.pass(7s, {1, 3}).silent, IsEmpty());
  watch.liveness.heard(2, watch.now);
  EXPECT_THAT(watch.pass(7s, {1, 3}).silent, IsEmpty());
  EXPECT_THAT(watch.pass(1s, {1, 3}).silent, SizeIs(1));
}

// This worker was stopped for an hour, or its machine slept: nobody was silent for that long.
TEST(Liveness, CountsSilenceOnlyWhileAwake) {
  Watch watch;
  watch.now += 1h;
  EXPECT_THAT(watch.liveness.check(watch.now).silent, IsEmpty());
  EXPECT_THAT(watch.pass(5s, {}).silent, IsEmpty());  // two beats counted of the hour
  const auto found = watch.pass(1s, {}).silent;
  ASSERT_THAT(found, SizeIs(3));
  EXPECT_THAT(found[0].how, HasSubstr("silent for 8 s"));
  EXPECT_EQ(found[0].unheard, 1h + 6s);
}

TEST(Liveness, NeverMissesItselfNorThoseThatLeft) {
  Watch watch(1);
  watch.liveness.left(0);
  watch.liveness.left(2);
  const auto found = watch.pass(20s, {}).silent;
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].rank, 3);
}

TEST(Liveness, TakesANewTimeout) {
  Watch watch;
  watch.liveness.set_timeout(80s);  // beats are at most 1 s apart
  EXPECT_EQ(watch.liveness.beat_interval(), 1s);
  EXPECT_THAT(watch.pass(79s, {}).silent, IsEmpty());
  EXPECT_THAT(watch.pass(1s, {}).silent, SizeIs(3));
}

TEST(Liveness, BeatsEightTimesInTheShortestLimit) {
  Watch watch;
  watch.liveness.set_timeout(4s);
  EXPECT_EQ(watch.liveness.beat_interval(), 500ms);
  watch.own.set_limit(2s, "stalls");
  EXPECT_EQ(watch.liveness.beat_interval(), 250ms);
  watch.liveness.set_timeout(1ms);
  EXPECT_EQ(watch.liveness.beat_interval(), 10ms);
}

// ---- connections that end -----------------------------------------------------------------------

TEST(Liveness, TakesAnEndForALoss) {
  Watch watch;
  watch.pass(2s, {});
  const auto closed = watch.liveness.ended(1, 0, watch.now);
  ASSERT_TRUE(closed);
  EXPECT_EQ(closed->rank, 1);
  EXPECT_EQ(
      closed->message(),
      "lost worker 1 on 'node1': its connection closed. It was last heard of 2 s ago, in step "
      "0, starting");
  const auto broken = watch.liveness.ended(3, ECONNRESET, watch.now);
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->how, "its connection broke: Connection reset by peer");
  const auto silent = watch.pass(20s, {}).silent;  // those two are lost already
  ASSERT_THAT(silent, SizeIs(1));
  EXPECT_EQ(silent[0].rank, 2);
}

TEST(Liveness, LosesNobodyWhoLeft) {
  Watch watch;
  watch.liveness.left(1);
  EXPECT_FALSE(watch.liveness.ended(1, 0, watch.now));
  EXPECT_FALSE(watch.liveness.ended(1, ECONNRESET, watch.now));
}

// ---- hanging ------------------------------------------------------------------------------------

struct StallWatch : Watch {
  StallWatch() {
    own.set_limit(4s, "stall_s");
    own.begin_step(5);
    own.begin(Operation::forward);
    own.begin(Operation::backward);
    for (const std::size_t rank : kPeers) liveness.is_at(rank, own.position());
  }
  const std::vector<std::size_t> kPeers = {1, 2, 3};
};

TEST(Liveness, NamesAllThatHangInTheSamePlace) {
  StallWatch watch;
  watch.liveness.is_at(2, {.step = 6, .turn = 0, .operation = Operation::waiting_for_data});
  EXPECT_FALSE(watch.pass(3s, watch.kPeers).hanging);
  const auto hanging = watch.pass(1s, watch.kPeers).hanging;
  ASSERT_TRUE(hanging);
  EXPECT_THAT(hanging->message,
              HasSubstr("workers 0 on 'node0', 1 on 'node1', 3 on 'node3' have been in "
                        "backward (step 5) for 4 s, longer than stall_s: 4 s allows"));
}

TEST(Liveness, LetsThoseHangThatWaitForOneBehind) {
  StallWatch watch;
  watch.liveness.is_at(3, {.step = 5, .turn = 1, .operation = Operation::forward});
  EXPECT_FALSE(watch.pass(20s, watch.kPeers).hanging);
  watch.liveness.is_at(3, watch.own.position());
  EXPECT_TRUE(watch.pass(1s, watch.kPeers).hanging);
}

// It is behind for ever, and nobody waits for it.
TEST(Liveness, WaitsForNobodyWhoLeft) {
  StallWatch watch;
  watch.liveness.is_at(3, {.step = 5, .turn = 1, .operation = Operation::forward});
  watch.liveness.left(3);
  const auto hanging = watch.pass(4s, watch.kPeers).hanging;
  ASSERT_TRUE(hanging);
  EXPECT_THAT(hanging->message, HasSubstr("workers 0 on 'node0', 1 on 'node1', 2 on 'node2' have"));
}

TEST(Liveness, CountsHangingOnlyWhileAwake) {
  StallWatch watch;
  watch.now += 1h;
  EXPECT_FALSE(watch.liveness.check(watch.now).hanging);  // two beats of half a second
  EXPECT_FALSE(watch.pass(2s, watch.kPeers).hanging);
  EXPECT_TRUE(watch.pass(1s, watch.kPeers).hanging);
}

// ---- who tells the user -------------------------------------------------------------------------

const Failure kOfTwo = {.code = ExitCode::diverged, .rank = 2, .lost = false, .message = "nan"};
const Failure kLossOfZero = {.code = ExitCode::peer_lost, .rank = 0, .lost = true, .message = ""};

bool reports(int rank, const Failure& failure, const std::vector<std::size_t>& gone = {}) {
  Watch watch(rank);
  for (const std::size_t other : gone) watch.liveness.ended(other, 0, watch.now);
  return watch.liveness.reports(failure);
}

TEST(Liveness, LetsTheFirstWorkerTellOfAFailure) {
  EXPECT_TRUE(reports(0, kOfTwo));
  for (const int rank : {1, 2, 3}) EXPECT_FALSE(reports(rank, kOfTwo)) << rank;
}

TEST(Liveness, LetsTheFirstThatIsLeftTellOfALoss) {
  EXPECT_TRUE(reports(1, kLossOfZero, {0}));
  EXPECT_FALSE(reports(2, kLossOfZero, {0}));
  EXPECT_TRUE(reports(2, kLossOfZero, {0, 1}));
}

TEST(Liveness, LetsALostWorkerTellItsOwnUser) { EXPECT_TRUE(reports(0, kLossOfZero)); }

TEST(Liveness, LetsOneThatLeftInOrderTell) {
  Watch watch(1);
  watch.liveness.left(0);
  watch.liveness.ended(0, 0, watch.now);
  EXPECT_FALSE(watch.liveness.reports(kOfTwo));
}

// The machine of 0 and 1 was cut off, and 1 was heard of a little later than 0.
TEST(Liveness, DoesNotLeaveItToAWorkerThatIsGoingSilent) {
  Watch watch(2);
  watch.pass(3s, {1, 3});
  EXPECT_THAT(watch.pass(5s, {3}).silent, SizeIs(1));
  EXPECT_TRUE(watch.liveness.reports(kLossOfZero));
  watch.liveness.heard(1, watch.now);  // it is there after all
  EXPECT_FALSE(watch.liveness.reports(kLossOfZero));
}

}  // namespace
}  // namespace decent
