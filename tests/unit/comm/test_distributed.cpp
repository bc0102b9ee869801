#include "decent/comm/distributed.h"

#include <ATen/ops/full.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <thread>

#include "launches.h"
#include "workers.h"

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

}  // namespace
}  // namespace decent
