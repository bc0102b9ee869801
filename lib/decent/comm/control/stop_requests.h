#pragma once
// What asks a run to stop from outside of it: signals to this worker, and the end of its launcher.
// A part of Control, whose thread takes the requests and passes them on to the other workers.

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "decent/comm/control/control_types.h"
#include "decent/comm/socket.h"

namespace decent {

/// Threads: the control thread's alone, but for what says otherwise.
class StopRequests {
 public:
  using Clock = std::chrono::steady_clock;

  /// `launcher` becomes readable when the launcher ends; closed: it means nothing.
  explicit StopRequests(Socket launcher) : launcher_(std::move(launcher)) {}

  /// Any thread; async-signal-safe.
  void note_signal(int signal) noexcept;

  /// What the launcher's end means from now on, also where it has ended already. Any thread.
  void on_launcher_end(LauncherEnd what) { meaning_ = what; }
  /// To be watched; -1 where there is nothing to watch.
  int launcher() const { return launcher_.descriptor(); }
  /// The descriptor was readable.
  void note_launcher_end();

  struct Request {
    int signal = 0;               // 0: the launcher has ended
    bool at_once = false;         // rather than after the same step on all workers
    std::string message() const;  // why the run ends at once
  };
  /// The next request, if there is one. A second signal at least 3 s after the first is a user, or
  /// a launcher, who does not want to wait: it asks to stop at once.
  std::optional<Request> take(Clock::time_point now);

 private:
  std::optional<Request> take_signal(Clock::time_point now);
  std::optional<Request> take_launcher_end();

  std::atomic<int> signals_{0};
  std::atomic<int> last_signal_{0};
  std::atomic<LauncherEnd> meaning_{LauncherEnd::nothing};
  static_assert(std::atomic<int>::is_always_lock_free);  // for signal handlers

  int signals_seen_ = 0;
  Clock::time_point first_signal_;
  Socket launcher_;
  bool launcher_ended_ = false;
};

}  // namespace decent
