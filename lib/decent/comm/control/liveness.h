#pragma once
// Which of the other workers are alive, as one worker sees it: when each was last heard of, who has
// been silent for too long, who hangs, who is gone, and which of the remaining workers tells the
// user. It neither listens nor reads a clock: the caller tells it what happened and when. A part of
// Control.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "decent/comm/control/control_types.h"
#include "decent/comm/control/farewell.h"
#include "decent/comm/control/own_progress.h"

namespace decent {

/// A worker that is gone, or silent for too long.
struct Loss {
  int rank = 0;
  std::string host;
  std::string how;                          // "its connection closed"
  std::chrono::duration<double> unheard{};  // since it was last heard of
  Position position;                        // where it was then
  LossKind kind = LossKind::gone;

  /// "lost worker 1 on 'node1': its connection closed. It was last heard of 0.2 s ago, in step 7,
  /// evaluating".
  std::string message() const;
};

/// What the end of a connection says of the worker behind it. `error`: errno, 0 for an end of file.
LossKind kind_of_end(int error);

/// Threads: the control thread's alone, but for set_timeout() and beat_interval().
class Liveness {
 public:
  using Clock = std::chrono::steady_clock;

  /// `hosts`: names of the workers' machines, by rank. `own`: the progress of this worker, `rank`;
  /// must outlive this object. `timeout_setting`: the user's name for the timeout, in messages.
  Liveness(int rank, const std::vector<std::string>& hosts, OwnProgress& own,
           std::chrono::duration<double> timeout, std::string timeout_setting,
           Clock::time_point now);

  std::size_t workers() const { return peers_.size(); }

  /// How long a peer may be silent.
  void set_timeout(std::chrono::duration<double> timeout) { timeout_s_ = timeout.count(); }

  /// How often workers must send heartbeats so that the limits can be checked.
  Clock::duration beat_interval() const;

  void heard(std::size_t rank, Clock::time_point now);
  void is_at(std::size_t rank, const Position& position) { peers_[rank].position = position; }
  /// Worker `rank` said that it leaves, or that it ends because of a failure, so that its end is
  /// not a loss.
  void left(std::size_t rank) { peers_[rank].left = true; }
  /// Another worker found out that worker `rank` is lost.
  void lost(std::size_t rank) { peers_[rank].alive = false; }
  /// How long ago worker `rank` was last heard of.
  Clock::duration unheard(std::size_t rank, Clock::time_point now) const {
    return now - peers_[rank].heard;
  }
  /// Whether worker `rank` has missed some heartbeats.
  bool is_quiet(std::size_t rank) const { return peers_[rank].quiet > 3 * beat_interval(); }
  /// The connection to worker `rank` has ended. `error`: its errno if it broke, 0 if it was closed.
  /// Returns the loss, unless the worker has left.
  std::optional<Loss> ended(std::size_t rank, int error, Clock::time_point now);

  /// Workers that all others wait for.
  struct Hanging {
    std::vector<int> ranks;
    std::string message;
  };
  struct Findings {
    std::vector<Loss> silent;  // each is found once
    std::optional<Hanging> hanging;
  };
  /// Finds workers that have been silent, or without progress, for too long. At most two heartbeat
  /// intervals of the time since the last check count. If more has passed, this worker itself was
  /// not running, and when it continues it must not take all others for silent or itself for
  /// stalled.
  Findings check(Clock::time_point now);

  /// Whether this worker tells the user why the run has failed: the lowest rank that is left. A
  /// worker that was declared lost also prints why it ends.
  bool reports(const Failure& failure) const;

 private:
  struct Peer {
    std::string host;
    Clock::time_point heard;
    Clock::duration quiet{};  // silence while this worker itself was awake
    Position position;        // when it was last heard of
    bool left = false;        // said that it leaves, or that it ends because of a failure
    bool alive = true;        // not lost, or it left in order
  };
  bool is_own(std::size_t rank) const { return rank == static_cast<std::size_t>(rank_); }
  bool is_watched(std::size_t rank) const;
  std::chrono::duration<double> timeout() const;
  Loss lose(std::size_t rank, LossKind kind, std::string how, Clock::time_point now);
  std::vector<Loss> find_silent(Clock::duration awake, Clock::time_point now);
  std::optional<Hanging> find_hanging(const Stall& stall) const;

  int rank_;
  std::vector<Peer> peers_;  // by rank
  OwnProgress& own_;
  std::atomic<double> timeout_s_;
  std::string timeout_setting_;
  Clock::time_point last_check_;
};

}  // namespace decent
