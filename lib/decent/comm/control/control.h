#pragma once
// The control plane: it carries heartbeats, the news that a worker failed or was lost, the
// agreement to stop after the same step, and small values that workers gather.
//
// A thread watches one connection to each peer (mesh.h). The kernel closes the connections of a
// process that dies, so all others learn at once who died first, whatever their training threads
// are doing. A worker that is stopped or cut off is declared lost after `timeout` of silence. A
// worker whose training thread hangs is not silent; the stall limit, if there is one, finds it. A
// worker that ends because another one did says so before it closes its connections, so that it is
// not taken for the first one.
//
// Once begin_farewells() was called, a loss does not fail the run. The workers that are left agree
// on who is lost and on their last step (farewell.h), as they do after a request to stop, and the
// waits for lost workers end (LostWorkers). They finish that step, save, and end.
//
// This object joins parts that know nothing of one another: links.h carries frames
// (control_frames.h gives them a meaning), liveness.h knows who is lost, stop_requests.h knows who
// asked to stop, stop_vote.h finds the last step, gather_box.h keeps gathered values.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "decent/comm/control/control_types.h"
#include "decent/comm/control/farewell.h"
#include "decent/comm/control/gather_box.h"
#include "decent/comm/control/links.h"
#include "decent/comm/control/liveness.h"
#include "decent/comm/control/own_progress.h"
#include "decent/comm/control/stop_requests.h"
#include "decent/comm/control/stop_vote.h"
#include "decent/comm/lost_workers.h"
#include "decent/comm/socket.h"

namespace decent {

namespace frames {
struct News;
}

struct ControlOptions {
  int rank = 0;
  std::vector<std::string> hosts;   // names of the workers' machines, by rank
  std::vector<Socket> connections;  // by rank, the own one closed
  std::chrono::duration<double> timeout{60};
  std::string timeout_setting = "timeout";  // the user's name for it, in messages
  /// Called once, in the control thread, when the run has failed and all peers have been told.
  /// `reports` is true on the one worker that should tell the user. It may end the process.
  std::function<void(const Failure&, bool reports)> on_failure;
  LauncherWatch launcher = {};  // see launcher_watch.h
};

/// Threads: the training thread may call all methods; signal handlers may call request_stop().
class Control {
 public:
  explicit Control(ControlOptions options);
  /// Closes the connections. Without leave() before it, peers treat this worker as lost.
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  /// How long a peer may be silent before it is declared lost.
  void set_timeout(std::chrono::duration<double> timeout);

  /// From now on a worker that stays in one operation for `most` ends the run, unless it waits for
  /// another worker that is behind it. `setting` is the user's name for the limit, in messages.
  void set_stall_limit(std::chrono::duration<double> most, std::string setting) {
    progress_.set_limit(most, std::move(setting));
  }

  /// Says what this worker is doing from now on, for messages of the others and for the stall
  /// limit. All workers must report the same operations in the same order. Cheap.
  void report(Operation operation) { progress_.begin(operation); }
  /// The operation that was reported last makes progress: its stall limit starts again.
  void progress() { progress_.move(); }

  /// The run resumes after step `step`.
  void resume_from(std::int64_t step);

  /// Call it before step t = 1, 2, ..; returns whether to do that step. If a stop was asked for and
  /// the last step is not agreed on yet, it waits for the other workers' control threads.
  bool begin_step(std::int64_t t);
  /// Whether a stop was asked for, or a worker is lost. The others receive the request before
  /// anything that this worker sends from now on; once they have such data, their begin_step()
  /// knows of the stop.
  bool stop_asked() const;
  /// The agreed stop, once begin_step has returned false.
  Stop stop() const;

  /// From now on the run does not fail when a worker is lost: begin_step() returns false after the
  /// last step of those that are left. A worker whose training thread does not arrive() within
  /// `most` after the loss is lost, too. All workers call it before any of them does a step.
  void begin_farewells(std::chrono::duration<double> most);
  /// From now on a loss fails the run again, unless a farewell has begun. Returns whether none has.
  bool end_farewells();
  /// For operations with other workers: those that are lost while this run goes on.
  const std::shared_ptr<LostWorkers>& lost_workers() const { return lost_workers_; }
  /// Whether a worker is lost and this run goes on to the end of its step.
  bool in_farewell() const;
  /// What is agreed on so far.
  Farewell farewell() const;
  /// When the first worker of a farewell was lost: its connection closed, or it was last heard of.
  std::chrono::system_clock::time_point lost_at() const;
  /// Returns at once, unless this process was stopped for some heartbeats: then it waits until the
  /// control thread has read what others have said meanwhile. Call it before writing anything of
  /// the run: if this worker was given up, it ends here.
  void catch_up();
  /// This worker has done its last step of a farewell.
  void arrive();
  /// Whether these workers save in a farewell (Farewell::saves). Returns once they agree on who is
  /// lost; if they would not save, a moment later, because silent workers may turn out to have
  /// ended.
  bool saves_in_farewell();
  /// gather() among the workers that are left: the bytes of lost workers are missing. Workers that
  /// keep others waiting here for some seconds after `most` are lost, too.
  std::vector<std::optional<std::string>> gather_of_survivors(const std::string& topic,
                                                              std::string own);

  /// All-gather: every worker gives bytes and gets the bytes of all, by rank. Calls are matched by
  /// `topic` and, within a topic, by their order; each topic belongs to one thread. Collective;
  /// waits for the others as long as they live. Throws PeerLost if a worker ended without giving
  /// its bytes, GivenUp if a worker is lost in a farewell and the bytes are not all there, and the
  /// run's failure if on_failure does not end the process.
  std::vector<std::string> gather(const std::string& topic, std::string own);

  /// Returns when worker `rank` has left, or after `most`.
  void wait_until_left(int rank, std::chrono::milliseconds most);

  /// What to do when the launcher ends, or if it has ended already.
  void on_launcher_end(LauncherEnd what);

  /// Asks all workers to stop after the same step. A second request at least 3 s after the first
  /// ends the run at once. Async-signal-safe.
  void request_stop(int signal) noexcept;

  /// Tells everyone that this worker failed; the first failure of a run counts. Returns after
  /// on_failure was called, unless that ends the process.
  void fail(Failure failure);

  /// For an error of an operation with peers. Gives the control thread a moment to find out whether
  /// a worker was lost, which makes a better message; otherwise fails with `failure`.
  void fail_after_loss(Failure failure);

  /// Whether the run has failed.
  bool failed() const { return failure().has_value(); }

  /// Tells the peers that this worker leaves, so that they do not treat it as lost when its
  /// connections close. Ends the thread.
  void leave();

 private:
  using Clock = std::chrono::steady_clock;
  enum class End { none, leave, abandon };

  // Called by the control thread.
  void run();
  void listen(std::chrono::milliseconds most);
  void take_frame(std::size_t rank, std::string_view frame);
  void beat_if_due();
  void check_liveness();
  void take_failure(std::size_t rank, Failure failure);
  bool is_lost(int rank) const;
  bool may_say_farewell() const;
  bool reports(const Failure& failure) const;
  void decide_on(const Loss& loss);
  void decide_on(const Liveness::Hanging& hanging);
  void say_farewell_to(const frames::News& news);
  std::optional<Farewell::Claim> lose(const frames::News& news);
  void note_gone(std::size_t rank);
  std::vector<int> late();
  void leave_late_behind();
  void pass_on_stop_requests();
  void send_given();
  void end_pass();
  void join_stop(int signal, int rank);
  void announce_failure(const Failure& failure);
  void say_goodbye();

  void give(const std::string& topic, std::string own);
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
  Farewell farewell_;
  std::optional<std::chrono::duration<double>> farewell_limit_;  // nothing: a loss fails the run
  Clock::time_point farewell_ends_ = Clock::time_point::max();
  Clock::time_point saving_ends_ = Clock::time_point::max();
  std::optional<std::string> gathers_;  // the topic for which this worker waits in a farewell
  std::chrono::system_clock::time_point lost_at_;
  Clock::time_point last_pass_ = Clock::now();  // of the control thread
  std::int64_t passes_ = 0;

  std::shared_ptr<LostWorkers> lost_workers_ = std::make_shared<LostWorkers>();
  std::thread thread_;
};

}  // namespace decent
