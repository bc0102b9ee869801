#pragma once
// How far this worker's training thread has come, and whether it still makes progress. A worker
// whose training thread hangs still sends heartbeats, so it is not silent.

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
  std::string setting;  // the user's name for the limit

  /// "worker 1 on 'node1' has been in forward (step 12) for 61 s ..". `workers` are all workers
  /// that are no further than the one that has waited.
  std::string message(std::span<const std::string> workers) const;
};

/// Safe to use from several threads at once.
class OwnProgress {
 public:
  using Duration = std::chrono::steady_clock::duration;

  /// How long one operation may take from now on, and the user's name for that limit.
  void set_limit(std::chrono::duration<double> limit, std::string setting);
  std::optional<std::chrono::duration<double>> limit() const;

  /// The next operation of the step begins.
  void begin(Operation operation);
  /// Step `step` begins, before its first operation.
  void begin_step(std::int64_t step);
  /// The operation makes progress: its time starts again.
  void move();

  Position position() const;

  /// Adds `awake`, the time since the last call in which this process ran. Returns the stall if the
  /// limit is reached.
  std::optional<Stall> look(Duration awake);

 private:
  mutable std::mutex mutex_;
  Position position_;
  Duration still_{};  // without a sign of progress
  std::optional<std::chrono::duration<double>> limit_;
  std::string setting_;
};

}  // namespace decent
