#pragma once
// What holds the workers of a run together besides their weights: heartbeats, the news that one
// failed or was lost, the agreement to stop after the same step, and what all tell all (gather).
//
// A thread of its own watches one connection to each peer (mesh.h). A process that dies closes its
// connections, so that all others learn at once who went first, in whatever state their training
// is; one that is stopped or cut off is given up after `timeout` of silence. A worker whose
// training thread alone hangs is not silent; the stall limit, where there is one, is for those. A
// worker that ends because of another says so before it closes its connections, so that it is not
// taken for the first.
//
// This object joins the parts, each of which knows nothing of the others: links.h carries frames
// (control_frames.h says what they mean), liveness.h knows who is lost, stop_requests.h what asks
// to stop, stop_vote.h after which step, gather_box.h what was given.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "decent/comm/control/control_types.h"
#include "decent/comm/control/gather_box.h"
#include "decent/comm/control/links.h"
#include "decent/comm/control/liveness.h"
#include "decent/comm/control/own_progress.h"
#include "decent/comm/control/stop_requests.h"
#include "decent/comm/control/stop_vote.h"
#include "decent/comm/socket.h"

namespace decent {

struct ControlOptions {
  int rank = 0;
  std::vector<std::string> hosts;   // names of the workers' machines, by rank
  std::vector<Socket> connections;  // by rank, the own one closed
  std::chrono::duration<double> timeout{60};
  std::string timeout_setting = "timeout";  // what messages call it
  /// Called once, in the control thread, when the run has failed; `reports` on the one worker that
  /// should tell the user. All peers have been told before. It may end the process.
  std::function<void(const Failure&, bool reports)> on_failure;
  /// Becomes readable when the launcher ends (launcher_watch.h); closed: it means nothing.
  Socket launcher = {};
};

/// Threads: all methods may be called by the training thread; request_stop by signal handlers too.
class Control {
 public:
  explicit Control(ControlOptions options);
  /// Closes the connections: peers that were not told by leave() take this worker for lost.
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  /// Silence of a peer that ends the run.
  void set_timeout(std::chrono::duration<double> timeout);

  /// From now on a worker that stays in one operation for so long ends the run, unless another is
  /// behind it, which it waits for. `setting` is what the message calls the limit.
  void set_stall_limit(std::chrono::duration<double> most, std::string setting) {
    progress_.set_limit(most, std::move(setting));
  }

  /// What this worker is doing from now on, for the others' messages and the stall limit. All
  /// workers report the same operations in the same order. Costs next to nothing.
  void report(Operation operation) { progress_.begin(operation); }
  /// The operation that was reported last makes progress: the stall limit counts from now.
  void progress() { progress_.move(); }

  /// Step `step` is done already: the run goes on from there.
  void go_on_from(std::int64_t step);

  /// Before step t = 1, 2, ..: whether it is to be done. Waits for the other workers' control
  /// threads where a stop was asked for and its last step is not agreed on yet.
  bool begin_step(std::int64_t t);
  /// The agreed stop, once begin_step has returned false.
  Stop stop() const;

  /// Every worker gives bytes of its own and gets what all have given, by rank. Calls are matched
  /// by `topic` and, within one, by their order; each topic belongs to one thread. Collective;
  /// waits for as long as the others live. Throws PeerLost where a worker has ended without giving
  /// its own, and what the run failed with where on_failure does not end the process.
  std::vector<std::string> gather(const std::string& topic, std::string own);

  /// Returns once worker `rank` has said goodbye, or after `most`.
  void wait_until_left(int rank, std::chrono::milliseconds most);

  /// What to do when the launcher ends, or did already.
  void on_launcher_end(LauncherEnd what);

  /// Asks all workers to stop after the same step. A second request at least 3 s after the first
  /// ends the run at once. Async-signal-safe.
  void request_stop(int signal) noexcept;

  /// Tells everyone that this worker failed; the first failure of a run counts. Does not return
  /// where on_failure ends the process, else when it was called.
  void fail(Failure failure);

  /// For an error of an operation with peers: gives the control thread a moment to see who was
  /// lost, which is the better message, and fails with `failure` where nobody was.
  void fail_after_loss(Failure failure);

  /// Says goodbye: the connections that close from now on are nobody's loss. Ends the thread.
  void leave();

 private:
  using Clock = std::chrono::steady_clock;
  enum class End { none, leave, abandon };

  // The control thread's.
  void run();
  void listen(std::chrono::milliseconds most);
  void take_frame(std::size_t rank, std::string_view frame);
  void beat_if_due();
  void check_liveness();
  void decide_on(const Loss& loss);
  void pass_on_stop_requests();
  void send_given();
  void join_stop(int signal, int rank);
  void announce_failure(const Failure& failure);
  void say_goodbye();

  void set_failure(Failure failure);
  std::optional<Failure> failure() const;
  void stop_thread(End end);
  End end() const;

  int rank_;
  std::function<void(const Failure&, bool)> on_failure_;
  Links links_;
  OwnProgress progress_;
  Liveness liveness_;
  StopRequests stop_requests_;
  GatherBox box_;
  Clock::time_point next_beat_ = Clock::now();

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  End end_ = End::none;
  std::optional<Failure> failure_;
  bool failure_told_ = false;
  std::vector<std::string> to_send_;  // frames of gather
  StopVote stop_;

  std::thread thread_;
};

}  // namespace decent
