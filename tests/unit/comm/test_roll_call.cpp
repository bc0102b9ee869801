#include "decent/comm/roll_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <torch/csrc/distributed/c10d/HashStore.hpp>

#include "../support/launches.h"
#include "decent/core/error.h"

namespace decent {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A launcher's store. A process that is killed is one that no test asks anything any more.
class RollCallAtAStore : public ::testing::Test {
 protected:
  RollCall process(int rank, const std::string& script, int workers = 2) {
    Launch launch = testing::launch_of(rank, workers, /*port=*/0);
    launch.script = script;
    return {store_, launch};
  }

  void count_a_start(int rank, const std::string& script) {
    store_->add("starts/" + std::to_string(rank) + "/" + script, 1);
  }

  // The others come until worker 0 has admitted them.
  static void expect_to_meet(RollCall& zero, RollCall& one) {
    one.program();
    EXPECT_THAT(zero.lost(), IsEmpty());
    EXPECT_TRUE(zero.complete());
    EXPECT_EQ(one.program(), zero.program());
    EXPECT_TRUE(one.complete());
    EXPECT_THAT(one.lost(), IsEmpty());
  }

 private:
  c10::intrusive_ptr<c10d::Store> store_ = c10::make_intrusive<c10d::HashStore>();
};

TEST_F(RollCallAtAStore, GivesEveryWorkerTheNumberOfWorkerZero) {
  RollCall two = process(2, "c", 3);
  EXPECT_EQ(two.program(), std::nullopt);
  RollCall zero = process(0, "a", 3);
  RollCall one = process(1, "b", 3);
  EXPECT_EQ(two.program(), std::nullopt);
  EXPECT_FALSE(zero.complete());
  EXPECT_FALSE(two.complete());
  EXPECT_THAT(zero.lost(), IsEmpty());
  EXPECT_TRUE(zero.complete());
  EXPECT_EQ(zero.program(), 1);
  EXPECT_EQ(one.program(), 1);
  EXPECT_EQ(two.program(), 1);
  EXPECT_TRUE(two.complete());
}

TEST_F(RollCallAtAStore, NamesThoseThatNeverCame) {
  RollCall two = process(2, "c", 4);
  EXPECT_THAT(two.absent(), ElementsAre(0, 1, 3));
}

TEST_F(RollCallAtAStore, TellsTheProgramsOfAScriptApart) {
  for (int program = 1; program <= 3; ++program) {
    RollCall one = process(1, "b");
    EXPECT_EQ(one.program(), std::nullopt);  // the program before has been called, but not this one
    RollCall zero = process(0, "a");
    EXPECT_EQ(zero.program(), program);
    expect_to_meet(zero, one);
  }
}

// Every agent of torchrun restarts its own workers, which it may have done more or less often.
TEST_F(RollCallAtAStore, IsNotConfusedByStartsOfSomeWorkersOnly) {
  process(1, "b1");
  process(1, "b2").program();
  process(0, "a1");
  process(1, "b3").program();
  process(0, "a2").lost();
  process(0, "a3").lost();
  RollCall one = process(1, "b4");
  RollCall zero = process(0, "a4");
  expect_to_meet(zero, one);
}

TEST_F(RollCallAtAStore, DoesNotAdmitAProcessOfAnEarlierCall) {
  RollCall dead = process(1, "b1");
  process(0, "a1");
  dead.program();  // answers that call
  RollCall zero = process(0, "a2");
  EXPECT_THAT(zero.lost(), IsEmpty());
  EXPECT_FALSE(zero.complete());
  RollCall one = process(1, "b2");
  expect_to_meet(zero, one);
}

// The others may have the address of the first one already.
TEST_F(RollCallAtAStore, AdmitsNobodyInPlaceOfAnAdmittedProcess) {
  RollCall dead = process(1, "b1");
  RollCall zero = process(0, "a1");
  expect_to_meet(zero, dead);
  RollCall one = process(1, "b2");
  EXPECT_EQ(one.program(), std::nullopt);
  EXPECT_THAT(zero.lost(), ElementsAre(1));
  EXPECT_EQ(one.program(), std::nullopt);
  RollCall zero_again = process(0, "a2");
  expect_to_meet(zero_again, one);
}

TEST_F(RollCallAtAStore, TellsTheAdmittedThatWorkerZeroIsAnother) {
  RollCall one = process(1, "b1");
  RollCall dead = process(0, "a1");
  expect_to_meet(dead, one);
  RollCall zero = process(0, "a2");
  EXPECT_THAT(one.lost(), ElementsAre(0));
  EXPECT_THAT(dead.lost(), ElementsAre(0));  // if it is not that dead
  RollCall again = process(1, "b2");
  expect_to_meet(zero, again);
}

// Worker 0 is killed after it has admitted the other, which has not read that yet.
TEST_F(RollCallAtAStore, MayAdmitAProcessAnew) {
  RollCall one = process(1, "b");
  RollCall dead = process(0, "a1");
  one.program();
  EXPECT_THAT(dead.lost(), IsEmpty());
  RollCall zero = process(0, "a2");
  EXPECT_EQ(one.program(), 1);
  EXPECT_THAT(one.lost(), ElementsAre(0));
  RollCall again = process(1, "b2");
  expect_to_meet(zero, again);
}

// The first program of the script ended on worker 1 before worker 0 had begun it.
TEST_F(RollCallAtAStore, DoesNotAdmitTheNextProgramOfAScript) {
  process(1, "b");
  RollCall second_of_one = process(1, "b");
  RollCall first_of_zero = process(0, "a");
  EXPECT_EQ(second_of_one.program(), std::nullopt);
  EXPECT_THAT(first_of_zero.lost(), ElementsAre(1));
  EXPECT_EQ(second_of_one.program(), std::nullopt);
  RollCall second_of_zero = process(0, "a");
  expect_to_meet(second_of_zero, second_of_one);
}

// Killed after it had counted its start, and before it wrote anything else.
TEST_F(RollCallAtAStore, KnowsProgramsOfAScriptByTheirStarts) {
  count_a_start(1, "b");
  RollCall second_of_one = process(1, "b");
  RollCall first_of_zero = process(0, "a");
  second_of_one.program();
  EXPECT_THAT(first_of_zero.lost(), ElementsAre(1));
  RollCall second_of_zero = process(0, "a");
  expect_to_meet(second_of_zero, second_of_one);
}

// The first program of the script ended on worker 0 before worker 1 came.
TEST_F(RollCallAtAStore, TellsAWorkerThatIsLeftBehind) {
  process(0, "a");
  RollCall second_of_zero = process(0, "a");
  RollCall first_of_one = process(1, "b");
  EXPECT_EQ(first_of_one.program(), std::nullopt);
  EXPECT_THAT(second_of_zero.lost(), IsEmpty());
  EXPECT_EQ(first_of_one.program(), std::nullopt);
  EXPECT_THAT(first_of_one.lost(), ElementsAre(0));
  EXPECT_EQ(first_of_one.answered(), 2);
  RollCall second_of_one = process(1, "b");
  expect_to_meet(second_of_zero, second_of_one);
}

// A process of an earlier round that nobody has ended yet.
TEST_F(RollCallAtAStore, PrefersTheNewestProcessOfARank) {
  RollCall slow = process(1, "b1");
  RollCall one = process(1, "b2");
  RollCall zero = process(0, "a");
  try {
    slow.program();
    ADD_FAILURE() << "no error";
  } catch (const PeerLost& error) {
    EXPECT_STREQ(error.what(), "worker 1 of 2 was started again, so this older process of it ends");
  }
  expect_to_meet(zero, one);
}

// Whichever of the two worker 0 has admitted, it does not go on with both.
TEST_F(RollCallAtAStore, DoesNotGoOnWithTwoProcessesOfARank) {
  RollCall slow = process(1, "b1");
  RollCall zero = process(0, "a1");
  expect_to_meet(zero, slow);
  RollCall one = process(1, "b2");
  EXPECT_THAT(zero.lost(), ElementsAre(1));
  EXPECT_EQ(one.program(), std::nullopt);
  RollCall zero_again = process(0, "a2");
  EXPECT_THAT(slow.lost(), ElementsAre(0));
  expect_to_meet(zero_again, one);
}

}  // namespace
}  // namespace decent
