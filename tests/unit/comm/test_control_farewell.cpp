// Control planes of workers that lose one of them while they train (Control::begin_farewells).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <thread>

#include "control_workers.h"
#include "decent/comm/lost_workers.h"

namespace decent {
namespace {

using namespace std::chrono_literals;
using testing::connect_all;
using testing::ControlledWorker;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::make_control;
using testing::make_workers;
using testing::Verdict;

std::deque<ControlledWorker> make_training(std::size_t count, std::chrono::duration<double> limit) {
  auto workers = make_workers(count);
  for (ControlledWorker& worker : workers) worker.control->begin_farewells(limit);
  return workers;
}

void wait_for_farewell(const Control& control) {
  const auto deadline = std::chrono::steady_clock::now() + 5s;
  while (!control.in_farewell() && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(1ms);
  ASSERT_TRUE(control.in_farewell());
}

// Does steps from `t` on, as a training thread would, and returns the last one.
std::int64_t last_step_from(Control& control, std::int64_t t) {
  while (control.begin_step(t)) ++t;
  return t - 1;
}

// A worker that is behind goes on to the step of the one that is furthest.
TEST(ControlFarewell, AllThatAreLeftEndAfterTheSameStep) {
  auto workers = make_training(3, 20s);
  EXPECT_TRUE(workers[0].control->begin_step(5));
  EXPECT_TRUE(workers[2].control->begin_step(8));
  workers[1].control.reset();
  for (const std::size_t i : {0U, 2U}) wait_for_farewell(*workers[i].control);
  auto first =
      std::async(std::launch::async, [&] { return last_step_from(*workers[0].control, 6); });
  EXPECT_EQ(last_step_from(*workers[2].control, 9), 8);
  EXPECT_EQ(first.get(), 8);
  const Farewell farewell = workers[2].control->farewell();
  EXPECT_THAT(farewell.lost(), ElementsAre(1));
  EXPECT_THAT(farewell.reason(), HasSubstr("lost worker 1 on 'node1': its connection "));
  EXPECT_TRUE(workers[0].control->lost_workers()->any_of({1}));
  EXPECT_FALSE(workers[0].control->lost_workers()->any_of({0, 2}));
  workers[0].control->leave();
  workers[2].control->leave();
}

TEST(ControlFarewell, GathersAreGivenUpAndSurvivorsGatherAmongThemselves) {
  auto workers = make_training(3, 20s);
  auto given_up = std::async(std::launch::async, [&] {
    try {
      workers[0].control->gather("all", "0");
    } catch (const GivenUp&) {
      return true;
    }
    return false;
  });
  workers[1].control.reset();
  EXPECT_TRUE(given_up.get());
  auto others = std::async(std::launch::async, [&] {
    wait_for_farewell(*workers[2].control);
    return workers[2].control->gather_of_survivors("left", "2");
  });
  const auto own = workers[0].control->gather_of_survivors("left", "0");
  EXPECT_EQ(own.at(0), "0");
  EXPECT_FALSE(own.at(1).has_value());
  EXPECT_EQ(own.at(2), "2");
  EXPECT_EQ(others.get(), own);
  workers[0].control->leave();
  workers[2].control->leave();
}

TEST(ControlFarewell, AWorkerThatDoesNotArriveInTimeIsLostToo) {
  auto workers = make_training(3, 500ms);
  workers[1].control.reset();
  wait_for_farewell(*workers[0].control);
  workers[0].control->arrive();
  ASSERT_TRUE(workers[2].verdict.wait());
  EXPECT_TRUE(workers[2].verdict.failure().lost);
  EXPECT_EQ(workers[2].verdict.failure().rank, 2);
  EXPECT_TRUE(workers[2].verdict.reports());
  const auto left = workers[0].control->gather_of_survivors("left", "0");
  EXPECT_FALSE(left.at(2).has_value());
  EXPECT_THAT(workers[0].control->farewell().lost(), ElementsAre(1, 2));
  EXPECT_FALSE(workers[0].control->failed());
  workers[0].control->leave();
}

// It has done its steps and hangs while it saves.
TEST(ControlFarewell, AWorkerThatKeepsTheOthersWaitingIsLostToo) {
  auto workers = make_training(3, 400ms);
  workers[1].control.reset();
  for (const std::size_t i : {0U, 2U}) {
    wait_for_farewell(*workers[i].control);
    workers[i].control->arrive();
  }
  const auto left = workers[0].control->gather_of_survivors("left", "0");
  EXPECT_FALSE(left.at(2).has_value());
  ASSERT_TRUE(workers[2].verdict.wait());
  EXPECT_EQ(workers[2].verdict.failure().rank, 2);
  workers[0].control->leave();
}

// Its training thread has failed, so its process ends.
TEST(ControlFarewell, AWorkerThatFailsInAFarewellIsLostToo) {
  auto workers = make_training(3, 20s);
  workers[1].control.reset();
  for (const std::size_t i : {0U, 2U}) wait_for_farewell(*workers[i].control);
  workers[2].control->fail(
      {.code = ExitCode::write_failed, .rank = 2, .lost = false, .message = "disk full"});
  const auto left = workers[0].control->gather_of_survivors("left", "0");
  EXPECT_FALSE(left.at(2).has_value());
  EXPECT_FALSE(workers[0].control->failed());
  EXPECT_TRUE(workers[2].verdict.reports());
  workers[0].control->leave();
}

// Two of four do not hear of the other two any more.
TEST(ControlFarewell, OfTwoHalvesOneSaves) {
  auto sockets = connect_all(4);
  const auto cut = [&](std::size_t a, std::size_t b) {
    // Open, but nobody reads or writes.
    static std::deque<Socket> ends;
    ends.push_back(std::move(sockets[b][a]));
    auto more = connect_all(2);
    sockets[b][a] = std::move(more[0][1]);
    ends.push_back(std::move(more[1][0]));
  };
  for (const std::size_t a : {0U, 1U}) {
    for (const std::size_t b : {2U, 3U}) cut(a, b);
  }
  std::deque<Verdict> verdicts(4);
  std::deque<std::unique_ptr<Control>> controls;
  for (std::size_t i = 0; i < 4; ++i) {
    controls.push_back(
        make_control(static_cast<int>(i), std::move(sockets[i]), verdicts[i], 500ms));
    controls.back()->begin_farewells(20s);
  }
  std::deque<std::future<std::int64_t>> ends;
  for (auto& control : controls) {
    wait_for_farewell(*control);
    ends.push_back(std::async(std::launch::async, [&] { return last_step_from(*control, 1); }));
  }
  for (auto& end : ends) end.get();
  EXPECT_TRUE(controls[0]->farewell().saves() && controls[1]->farewell().saves());
  EXPECT_FALSE(controls[2]->farewell().saves() || controls[3]->farewell().saves());
  EXPECT_EQ(controls[3]->farewell().speaker(), 2);
  for (auto& control : controls) control->leave();
}

TEST(ControlFarewell, ASignalChangesNothingInAFarewell) {
  auto workers = make_training(2, 20s);
  EXPECT_TRUE(workers[0].control->begin_step(3));
  workers[1].control.reset();
  wait_for_farewell(*workers[0].control);
  workers[0].control->request_stop(SIGTERM);
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(workers[0].control->begin_step(4));
  EXPECT_TRUE(workers[0].control->in_farewell());
  EXPECT_FALSE(workers[0].control->failed());
  workers[0].control->leave();
}

TEST(ControlFarewell, AfterItsEndALossFailsTheRun) {
  auto workers = make_training(2, 20s);
  for (ControlledWorker& worker : workers) EXPECT_TRUE(worker.control->end_farewells());
  workers[1].control.reset();
  ASSERT_TRUE(workers[0].verdict.wait());
  EXPECT_EQ(workers[0].verdict.failure().rank, 1);
}

TEST(ControlFarewell, CatchingUpReturnsAtOnceInAProcessThatRuns) {
  auto workers = make_training(2, 20s);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 1000; ++i) workers[0].control->catch_up();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
  for (ControlledWorker& worker : workers) worker.control->leave();
}

}  // namespace
}  // namespace decent
