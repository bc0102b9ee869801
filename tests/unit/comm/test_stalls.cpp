// A training thread that hangs while its worker's heartbeats go on.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "control_workers.h"

namespace decent {
namespace {

using testing::ControlledWorker;
using ::testing::HasSubstr;
using testing::make_workers;
using namespace std::chrono_literals;

std::deque<ControlledWorker> watched_workers(std::size_t count,
                                             std::chrono::duration<double> limit) {
  auto workers = make_workers(count);
  for (ControlledWorker& worker : workers) {
    worker.control->begin_step(1);
    worker.control->set_stall_limit(limit, "parallel.stall_s");
  }
  return workers;
}

void go_to(Control& control, std::int64_t step, std::initializer_list<Operation> operations) {
  control.begin_step(step);
  for (const Operation operation : operations) control.report(operation);
}

TEST(Stalls, NameTheWorkerThatAllWaitFor) {
  auto workers = watched_workers(3, 0.4s);
  constexpr auto kData = Operation::waiting_for_data;
  go_to(*workers[1].control, 5, {kData, Operation::forward});
  go_to(*workers[0].control, 6, {kData, Operation::forward, Operation::backward});
  go_to(*workers[2].control, 5, {kData, Operation::forward, Operation::backward});
  for (std::size_t rank = 0; rank < workers.size(); ++rank) {
    ASSERT_TRUE(workers[rank].verdict.wait());
    const Failure failure = workers[rank].verdict.failure();
    EXPECT_EQ(failure.code, ExitCode::peer_lost);
    EXPECT_THAT(failure.message, HasSubstr("worker 1 on 'node1' has been in forward (step 5) for"));
    EXPECT_THAT(failure.message, HasSubstr("parallel.stall_s: 0.4 s allows"));
    EXPECT_EQ(workers[rank].verdict.reports(), rank == 0);
  }
}

TEST(Stalls, NameAllWhoAreInTheSamePlace) {
  auto workers = watched_workers(2, 0.3s);
  for (ControlledWorker& worker : workers) go_to(*worker.control, 3, {Operation::averaging});
  ASSERT_TRUE(workers[0].verdict.wait());
  EXPECT_THAT(workers[0].verdict.failure().message,
              HasSubstr("workers 0 on 'node0', 1 on 'node1' have been averaging (step 3) for"));
}

TEST(Stalls, OfASingleWorkerToo) {
  auto workers = watched_workers(1, 0.2s);
  go_to(*workers[0].control, 2, {Operation::waiting_for_data});
  ASSERT_TRUE(workers[0].verdict.wait());
  EXPECT_THAT(workers[0].verdict.failure().message,
              HasSubstr("worker 0 on 'node0' has been waiting for data (step 2) for"));
}

// Worker 0 waits for longer than the limit for one that is behind and slow, but moves.
TEST(Stalls, AreNotWhereTheOneBehindMoves) {
  auto workers = watched_workers(2, 0.5s);
  go_to(*workers[0].control, 2, {Operation::backward});
  go_to(*workers[1].control, 1, {});
  for (int i = 0; i < 6; ++i) {
    workers[1].control->report(i % 2 == 0 ? Operation::forward : Operation::backward);
    std::this_thread::sleep_for(200ms);
  }
  EXPECT_FALSE(workers[0].verdict.wait(0ms));
  EXPECT_FALSE(workers[1].verdict.wait(0ms));
  for (ControlledWorker& worker : workers) worker.control->leave();
}

TEST(Stalls, AreNotWhereAnOperationMakesProgress) {
  auto workers = watched_workers(2, 0.5s);
  for (ControlledWorker& worker : workers) go_to(*worker.control, 2, {Operation::evaluating});
  for (int i = 0; i < 6; ++i) {
    for (ControlledWorker& worker : workers) worker.control->progress();
    std::this_thread::sleep_for(200ms);
  }
  for (ControlledWorker& worker : workers) {
    EXPECT_FALSE(worker.verdict.wait(0ms));
    worker.control->leave();
  }
}

TEST(Stalls, AreNobodysBusinessWithoutALimit) {
  auto workers = make_workers(2, 0.2s);
  go_to(*workers[0].control, 2, {Operation::forward});
  std::this_thread::sleep_for(1s);
  for (ControlledWorker& worker : workers) {
    EXPECT_FALSE(worker.verdict.wait(0ms));
    worker.control->leave();
  }
}

}  // namespace
}  // namespace decent
