#pragma once
// Workers of a run that are threads of this process.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "decent/comm/world.h"
#include "launches.h"
#include "workers.h"

namespace decent::testing {

/// Runs `work(world)` as each of `workers` workers; a lost worker fails the test.
template <typename Work>
void run_worlds(int workers, Work work) {
  turn_off_flight_recorder();
  const int port = free_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < workers; ++rank) {
    threads.emplace_back([&work, rank, workers, port] {
      World world(launch_of(rank, workers, port), {.timeout = std::chrono::seconds(20),
                                                   .on_failure = [](const Failure& failure, bool) {
                                                     ADD_FAILURE() << failure.message;
                                                   }});
      work(world);
      world.control().leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace decent::testing
