#pragma once
// Requests from outside to stop the run: signals to this worker, and the end of its launcher. A
// part of Control, whose thread takes the requests and passes them on to the other workers.

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "decent/comm/control/control_types.h"
#include "decent/comm/socket.h"

namespace decent {

/// A launcher whose end is noticed (launcher_watch.h).
struct WatchedLauncher {
  Socket end = {};                    // becomes readable when it ends; closed: nothing to watch
  std::string name = "the launcher";  // in messages
};

/// Threads: only the control thread uses it, except where a method says otherwise.
class StopRequests {
 public:
  using Clock = std::chrono::steady_clock;

  explicit StopRequests(WatchedLauncher launcher) : launcher_(std::move(launcher)) {}

  /// Any thread; async-signal-safe.
  void note_signal(int signal) noexcept;

  /// What the end of the launcher means from now on, also if it has ended already. Any thread.
  void on_launcher_end(LauncherEnd what) { meaning_ = what; }
  /// The descriptor to watch; -1 if there is none.
  /// Never changes; any thread.
  const std::string& launcher_name() const { return launcher_.name; }
  int launcher() const { return launcher_.end.descriptor(); }
  /// That descriptor was readable.
  void note_launcher_end();

  struct Request {
    int signal = 0;               // 0: the launcher has ended
    bool at_once = false;         // rather than after the same step on all workers
    std::string launcher = {};    // its name
    std::string message() const;  // why the run ends at once
  };
  /// The next request, if there is one. A second signal at least 3 s after the first asks to stop
  /// at once, because a user or launcher that sends it does not want to wait.
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
  WatchedLauncher launcher_;
  bool launcher_ended_ = false;
};

}  // namespace decent
