#pragma once
// N workers as N threads of this process, connected over 127.0.0.1, or through shared memory if the
// variable DECENT_TEST_SHARED_MEMORY is set. So tests of all communicators run once with each.

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <type_traits>
#include <vector>

#include "decent/comm/gloo.h"
#include "decent/comm/shared_memory/shared_communicator.h"
#include "decent/core/error.h"

namespace decent::testing {

/// A worker without a result returns Nothing; a worker that leaves the others behind throws Left.
struct Nothing {};
struct Left : std::exception {};

using Worker = std::shared_ptr<Communicator>;

/// Call it before the first operation: torch 2.11 records recent operations in one map of the
/// process, and every thread that starts an operation writes there without a lock
/// (c10d::FlightRecorder::recordWithResetEnabled).
inline void turn_off_flight_recorder() { ::setenv("TORCH_FR_BUFFER_SIZE", "0", 1); }

inline bool through_shared_memory() { return std::getenv("DECENT_TEST_SHARED_MEMORY") != nullptr; }

/// The connections among the workers of one test.
class Connections {
 public:
  Connections(int workers, std::chrono::milliseconds timeout)
      : workers_(workers), timeout_(timeout), store_(c10::make_intrusive<c10d::HashStore>()) {
    store_->setTimeout(timeout);
    for (int rank = 0; rank < workers; ++rank) {
      ranks_.push_back(rank);
      if (through_shared_memory())
        arenas_.push_back(Mail::make_arena(static_cast<std::size_t>(workers)));
    }
  }

  Worker connect(int rank) {
    if (workers_ == 1) return make_single_worker();
    if (through_shared_memory())
      return share_memory(std::make_shared<Mail>(static_cast<std::size_t>(rank), arenas_), ranks_);
    return connect_gloo(*store_, rank, workers_,
                        {.interfaces = {}, .address = "127.0.0.1", .timeout = timeout_});
  }

 private:
  int workers_;
  std::chrono::milliseconds timeout_;
  c10::intrusive_ptr<c10d::HashStore> store_;
  std::vector<int> ranks_;
  std::vector<std::shared_ptr<Arena>> arenas_;
};

/// Runs `work(communicator)` on every worker and returns the results by rank. If a worker throws,
/// its connections close, so that the others do not wait for it. Throws the first exception that is
/// not merely the loss of a peer.
template <typename Work>
auto run_workers(int workers, Work work,
                 std::chrono::milliseconds timeout = std::chrono::seconds(20)) {
  using Result = std::invoke_result_t<Work, Worker>;
  turn_off_flight_recorder();
  Connections connections(workers, timeout);
  const auto size = static_cast<std::size_t>(workers);
  std::vector<Result> results(size);
  std::vector<std::exception_ptr> failures(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < workers; ++rank) {
    threads.emplace_back([&, rank] {
      const auto i = static_cast<std::size_t>(rank);
      try {
        const Worker world = connections.connect(rank);
        results[i] = work(world);
        world->barrier();  // no worker may close connections that another still uses
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::exception_ptr first;
  for (const std::exception_ptr& failure : failures) {
    if (failure == nullptr) continue;
    if (first == nullptr) first = failure;
    try {
      std::rethrow_exception(failure);
    } catch (const PeerLost&) {
    } catch (...) {
      first = failure;
      break;
    }
  }
  if (first != nullptr) std::rethrow_exception(first);
  return results;
}

}  // namespace decent::testing
