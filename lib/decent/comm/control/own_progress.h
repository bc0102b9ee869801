#pragma once
// How far this worker's training thread has come, and whether it still moves: a thread that hangs
// while its worker's heartbeats go on is lost, too, but not silent.

#include <chrono>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "decent/comm/control/control_types.h"

namespace decent {

/// A worker that has been in one operation for longer than it may.
struct Stall {
  Position position;
  std::chrono::duration<double> waited{};
  std::chrono::duration<double> limit{};
  std::string setting;  // what the user calls the limit

  /// "worker 1 on 'node1' has been in forward (step 12) for 61 s ..". `workers` are all that are no
  /// further than the one that has waited.
  std::string message(std::span<const std::string> workers) const;
};

/// Safe to use from several threads at once.
class OwnProgress {
 public:
  using Duration = std::chrono::steady_clock::duration;

  /// How long one operation may take from now on, and what the user calls that.
  void set_limit(std::chrono::duration<double> limit, std::string setting);
  std::optional<std::chrono::duration<double>> limit() const;

  /// The next operation of the step.
  void begin(Operation operation);
  /// Step `step`, before its first operation.
  void begin_step(std::int64_t step);
  /// The operation makes progress: its time counts from now.
  void move();

  Position position() const;

  /// Adds the time since the last look in which this process ran. The stall where the limit is
  /// reached.
  std::optional<Stall> look(Duration awake);

 private:
  mutable std::mutex mutex_;
  Position position_;
  Duration still_{};  // without a sign of progress
  std::optional<std::chrono::duration<double>> limit_;
  std::string setting_;
};

}  // namespace decent
