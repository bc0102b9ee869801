#include "decent/comm/distributed.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <future>
#include <memory>
#include <stdexcept>
#include <thread>

#include "../support/idle_communicator.h"
#include "../support/launches.h"
#include "../support/workers.h"
#include "../support/worlds.h"
#include "decent/comm/bounded.h"

namespace decent {
namespace {

using namespace std::chrono_literals;

void no_failure(const Failure& failure, bool) { ADD_FAILURE() << failure.message; }

// The environment of this test has no launcher.
TEST(InitializeDistributed, WorksWithoutALauncher) {
  for (const char* name : {"RANK", "WORLD_SIZE"}) ASSERT_EQ(std::getenv(name), nullptr);
  Distributed workers = initialize_distributed();
  EXPECT_EQ(workers.rank(), 0);
  EXPECT_EQ(workers.world_size(), 1);
  EXPECT_EQ(workers.local_rank(), 0);
  EXPECT_EQ(workers.local_world_size(), 1);
  EXPECT_TRUE(workers.main_worker());
  EXPECT_EQ(workers.backend(), "none");
  EXPECT_TRUE(workers.device().is_cpu());
  EXPECT_EQ(workers.communicator()->size(), 1);
  struct sigaction now {};
  ASSERT_EQ(::sigaction(SIGPIPE, nullptr, &now), 0);
  EXPECT_EQ(now.sa_handler, SIG_IGN);
}

TEST(InitializeDistributed, NamesWhatTheLauncherLeftOut) {
  ::setenv("RANK", "0", 1);
  try {
    initialize_distributed();
    ADD_FAILURE() << "no error";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("WORLD_SIZE is missing"));
  }
  ::unsetenv("RANK");
}

TEST(Distributed, ConnectsWorkersThatLeaveInOrder) {
  testing::turn_off_flight_recorder();
  const int port = testing::free_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([rank, port] {
      Distributed workers(testing::launch_of(rank, 3, port),
                          {.timeout = 20s, .on_failure = no_failure});
      EXPECT_EQ(workers.rank(), rank);
      EXPECT_EQ(workers.main_worker(), rank == 0);
      EXPECT_EQ(workers.backend(), "shared memory");
      EXPECT_EQ(workers.sharing_problem(), "");
      const at::Tensor sum = at::full({2}, rank + 1.0);
      workers.communicator()->all_reduce_sum(sum)->wait();
      EXPECT_EQ(sum[0].item<float>(), 6);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Distributed, IsLostToTheOthersWhenAnExceptionEndsIt) {
  testing::turn_off_flight_recorder();
  const int port = testing::free_port();
  std::promise<Failure> told;
  std::thread failing([port] {
    try {
      Distributed workers(testing::launch_of(1, 2, port),
                          {.timeout = 20s, .on_failure = [](auto&&...) {}});
      throw std::runtime_error("out of ideas");
    } catch (const std::runtime_error&) {
    }
  });
  {
    Distributed workers(testing::launch_of(0, 2, port),
                        {.timeout = 20s, .on_failure = [&told](const Failure& failure, bool) {
                           told.set_value(failure);
                         }});
    const Failure failure = told.get_future().get();
    EXPECT_TRUE(failure.lost);
    EXPECT_EQ(failure.rank, 1);
    EXPECT_EQ(failure.code, ExitCode::peer_lost);
  }
  failing.join();
}

// As NCCL: a wait() makes a stream wait, and the operation is complete some time later. Whoever
// destroys it before that cuts off the peers.
class LateCommunicator : public testing::IdleCommunicator {
 public:
  ~LateCommunicator() override { EXPECT_TRUE(complete || given_up); }
  void barrier() override { ADD_FAILURE() << "which cannot give up"; }
  void drain(const std::function<bool()>& give_up) override {
    while (!complete && !given_up) {
      std::this_thread::sleep_for(1ms);
      given_up = give_up();
    }
  }

  std::atomic<bool> complete = false;
  bool given_up = false;
};

TEST(LeaveTogether, WaitsUntilAllWorkersHaveTheirResults) {
  std::atomic<int> complete = 0;
  testing::run_worlds(3, [&](World& world) {
    LateCommunicator communicator;
    std::thread device([&, rank = world.launch().rank] {
      std::this_thread::sleep_for(rank * 30ms);
      ++complete;
      communicator.complete = true;
    });
    leave_together(communicator, world.control());
    EXPECT_EQ(complete, 3);
    device.join();
  });
}

TEST(LeaveTogether, GivesUpWhereTheRunHasFailed) {
  testing::turn_off_flight_recorder();
  const int port = testing::free_port();
  std::promise<void> connected;
  std::thread failing([&] {
    World world(testing::launch_of(1, 2, port), {.timeout = 20s, .on_failure = [](auto&&...) {}});
    connected.get_future().wait();  // and ends without a word
  });
  {
    World world(testing::launch_of(0, 2, port), {.timeout = 20s, .on_failure = [](auto&&...) {}});
    LateCommunicator communicator;
    connected.set_value();
    leave_together(communicator, world.control());  // returns
    EXPECT_TRUE(communicator.given_up);
  }
  failing.join();
}

// The first worker to be done waits, whatever carries the tensors.
TEST(Distributed, LeavesWithTheOthers) {
  testing::turn_off_flight_recorder();
  const int port = testing::free_port();
  std::atomic<bool> last_is_done = false;
  std::thread first([&] {
    {
      Distributed workers(testing::launch_of(1, 2, port),
                          {.timeout = 20s, .on_failure = no_failure});
    }
    EXPECT_TRUE(last_is_done);
  });
  {
    Distributed workers(testing::launch_of(0, 2, port), {.timeout = 20s, .on_failure = no_failure});
    std::this_thread::sleep_for(50ms);
    last_is_done = true;
  }
  first.join();
}

TEST(DoneWithin, LeavesWhatNeverReturns) {
  EXPECT_TRUE(done_within(20s, [] {}));
  EXPECT_TRUE(done_within(20s, [] { throw std::runtime_error("nobody hears of it"); }));
  const auto held = std::make_shared<std::promise<void>>();
  std::shared_future<void> released = held->get_future().share();
  EXPECT_FALSE(done_within(10ms, [released, held] { released.wait(); }));
  held->set_value();
  while (held.use_count() > 1) std::this_thread::sleep_for(1ms);
}

}  // namespace
}  // namespace decent
