#include "decent/supervisor/worker_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decent/comm/launch.h"

namespace decent {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

constexpr WorkerPlace kPlace{
    .rank = 1, .workers = 4, .port = 1234, .supervisor = 7, .store_listener = -1};

TEST(WorkerEnvironment, HasALaunchersVariables) {
  EXPECT_THAT(
      environment_of(kPlace, {"HOME=/root"}, 2),
      IsSupersetOf({"HOME=/root", "RANK=1", "WORLD_SIZE=4", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=4",
                    "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1234", "DECENT_SUPERVISOR=7"}));
}

TEST(WorkerEnvironment, IsReadBack) {
  WorkerPlace place = kPlace;
  place.store_listener = 9;
  const auto variables = environment_of(place, {}, 2);
  const Launch launch = read_launch([&](const std::string& name) -> std::optional<std::string> {
    for (const std::string& variable : variables) {
      if (variable.starts_with(name + "=")) return variable.substr(name.size() + 1);
    }
    return std::nullopt;
  });
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.world_size, 4);
  EXPECT_EQ(launch.master_port, 1234);
  EXPECT_EQ(launch.supervisor, 7);
  EXPECT_EQ(launch.store_listener, 9);
}

TEST(WorkerEnvironment, ReplacesThatOfAnotherLauncher) {
  const auto variables = environment_of(
      kPlace, {"RANK=0", "MASTER_ADDR=10.0.0.1", "TORCHELASTIC_USE_AGENT_STORE=True"}, 2);
  EXPECT_THAT(variables, Not(Contains("RANK=0")));
  EXPECT_THAT(variables, Not(Contains("MASTER_ADDR=10.0.0.1")));
  EXPECT_THAT(variables, Each(Not(StartsWith("TORCHELASTIC_"))));
}

TEST(WorkerEnvironment, SharesProcessorsOut) {
  EXPECT_THAT(environment_of(kPlace, {}, 8), Contains("OMP_NUM_THREADS=2"));
  EXPECT_THAT(environment_of(kPlace, {}, 2), Contains("OMP_NUM_THREADS=1"));
}

TEST(WorkerEnvironment, KeepsTheUsersNumberOfThreads) {
  const auto variables = environment_of(kPlace, {"OMP_NUM_THREADS=3"}, 8);
  EXPECT_THAT(variables, Contains("OMP_NUM_THREADS=3"));
  EXPECT_THAT(variables, Not(Contains("OMP_NUM_THREADS=2")));
}

TEST(WorkerEnvironment, LeavesASingleWorkersThreadsToLibTorch) {
  const WorkerPlace alone{.rank = 0, .workers = 1, .port = 1234};
  EXPECT_THAT(environment_of(alone, {}, 8), Each(Not(StartsWith("OMP_NUM_THREADS="))));
}

}  // namespace
}  // namespace decent
