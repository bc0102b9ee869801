#pragma once
// Control planes of workers that are connected with one another, in one process.

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "decent/comm/control/control.h"

namespace decent::testing {

using namespace std::chrono_literals;

// What on_failure was told, on one worker.
class Verdict {
 public:
  void set(const Failure& failure, bool reports) {
    const std::lock_guard lock(mutex_);
    ASSERT_FALSE(failure_) << "told twice";
    failure_ = failure;
    reports_ = reports;
    changed_.notify_all();
  }
  bool wait(std::chrono::milliseconds most = 5s) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, most, [&] { return failure_.has_value(); });
  }
  Failure failure() {
    const std::lock_guard lock(mutex_);
    return failure_.value();
  }
  bool reports() {
    const std::lock_guard lock(mutex_);
    return reports_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Failure> failure_;
  bool reports_ = false;
};

struct ControlledWorker {
  Verdict verdict;
  std::unique_ptr<Control> control;
};

// Connections of `count` workers with one another: [worker][peer].
inline std::vector<std::vector<Socket>> connect_all(std::size_t count) {
  std::vector<std::vector<Socket>> sockets;
  for (std::size_t i = 0; i < count; ++i) sockets.emplace_back(count);
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) {
      std::array<int, 2> pair{};
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair.data()), 0);
      sockets[i][j] = Socket(pair[0]);
      sockets[j][i] = Socket(pair[1]);
    }
  }
  return sockets;
}

inline std::unique_ptr<Control> make_control(int rank, std::vector<Socket> sockets,
                                             Verdict& verdict,
                                             std::chrono::duration<double> timeout) {
  std::vector<std::string> hosts;
  for (std::size_t i = 0; i < sockets.size(); ++i) hosts.push_back("node" + std::to_string(i));
  return std::make_unique<Control>(
      ControlOptions{.rank = rank,
                     .hosts = hosts,
                     .connections = std::move(sockets),
                     .timeout = timeout,
                     .timeout_setting = "parallel.timeout_s",
                     .on_failure = [&verdict](const Failure& failure, bool reports) {
                       verdict.set(failure, reports);
                     }});
}

inline std::deque<ControlledWorker> make_workers(std::size_t count,
                                                 std::chrono::duration<double> timeout = 20s) {
  auto sockets = connect_all(count);
  std::deque<ControlledWorker> workers(count);
  for (std::size_t i = 0; i < count; ++i) {
    workers[i].control =
        make_control(static_cast<int>(i), std::move(sockets[i]), workers[i].verdict, timeout);
  }
  return workers;
}

}  // namespace decent::testing
