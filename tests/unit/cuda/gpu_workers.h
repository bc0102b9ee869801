#pragma once
// Workers with a GPU, each a process of its own. On a machine with fewer GPUs than workers they
// share them: NCCL allows it where each has an NCCL_HOSTID of its own.
//
// The test's own process never touches a GPU: CUDA does not survive fork().

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "../support/child_process.h"
#include "../support/launches.h"
#include "decent/comm/world.h"

namespace decent::testing {

struct GpuWorker {
  World& world;
  std::shared_ptr<Communicator> communicator;
  c10::Device device;
};

/// Runs `work` on `workers` workers. Returns for each "fine", or what went wrong.
inline std::vector<std::string> results_of_gpu_workers(
    int workers, BackendRequest backend, const std::function<void(const GpuWorker&)>& work,
    const std::function<void(const Failure&, bool)>& on_failure) {
  const int port = free_port();
  std::vector<ChildProcess> children;
  for (int rank = 0; rank < workers; ++rank) {
    children.emplace_back([&, rank]() -> std::string {
      ::setenv("NCCL_HOSTID", ("worker-" + std::to_string(rank)).c_str(), 1);
      const Launch launch = launch_of(rank, workers, port);
      DeviceChoice choice = choose_device(DeviceRequest::cuda, backend, launch);
      World world(launch, {.timeout = std::chrono::seconds(60), .on_failure = on_failure});
      const auto communicator = world.communicator(choice);
      work({world, communicator, choice.device});
      communicator->barrier();  // nobody ends what another still uses
      world.control().leave();
      return ::testing::Test::HasFailure() ? "failed, as printed above" : "fine";
    });
  }
  std::vector<std::string> results;
  for (ChildProcess& child : children) results.push_back(child.result());
  return results;
}

/// The same; what fails in one of them fails the test.
inline void run_gpu_workers(int workers, BackendRequest backend,
                            const std::function<void(const GpuWorker&)>& work) {
  const auto lost = [](const Failure& failure, bool) { ADD_FAILURE() << failure.message; };
  for (const std::string& result : results_of_gpu_workers(workers, backend, work, lost)) {
    EXPECT_EQ(result, "fine");
  }
}

}  // namespace decent::testing
