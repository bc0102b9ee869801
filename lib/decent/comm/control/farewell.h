#pragma once
// What the workers that are left agree on after a loss: who is lost, the last step that they finish
// without the lost ones, and whether they are the ones to save it. A part of Control.
//
// Each worker tells the others whom it knows to be lost, and the step that it has begun; it begins
// no other one until all that are left have told the same list. The highest of their steps is the
// last one. A further loss starts another round with a longer list. A round never takes back a step
// that somebody who is left has begun.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace decent {

/// How a worker was lost.
enum class LossKind {
  gone,    // its process has ended
  silent,  // it may still train, on the other side of a network that was cut
};

/// One worker's view of the agreement. It neither sends nor reads a clock. Not thread-safe.
class Farewell {
 public:
  /// What a worker says in a round.
  struct Claim {
    std::set<int> lost;
    std::int64_t step = 0;
    bool operator==(const Claim&) const = default;
  };

  Farewell(int rank, std::size_t workers);

  bool begun() const { return !lost_.empty(); }
  const std::set<int>& lost() const { return lost_; }
  bool is_lost(int rank) const { return lost_.contains(rank); }
  /// Why the first worker was lost.
  const std::string& reason() const { return reason_; }

  /// Worker `rank` is lost. `step`: the highest step that this worker has begun.
  /// Returns what this worker claims from now on, for all others; nothing if that loss was known.
  std::optional<Claim> lose(int rank, LossKind kind, const std::string& reason, std::int64_t step);

  /// The process of worker `rank`, which is lost, has ended: it cannot be one of another part.
  void is_gone(int rank) { silent_.erase(rank); }

  /// Worker `rank` claims this.
  void claims(int rank, Claim claim);

  /// Whether all that are left claim the same losses, so that the last step is known.
  bool settled() const;
  /// The step that is finished without the lost workers; valid once settled().
  std::int64_t last_step() const;

  /// The training thread of worker `rank` has finished its steps.
  void arrives(int rank) { arrived_.insert(rank); }
  /// Those that are left and have not arrived.
  std::vector<int> late() const;

  /// The lowest rank that is left: it speaks for the others.
  int speaker() const;
  /// Whether these workers save. Silent workers may be the other part of a run that was cut in two:
  /// the larger part saves, of equal parts the one with the lowest rank. Workers whose processes
  /// have ended belong to no part.
  bool saves() const;

 private:
  std::vector<int> left() const;

  int rank_;
  int workers_;
  std::set<int> lost_;
  std::set<int> silent_;  // of lost_
  std::string reason_;
  std::vector<std::optional<Claim>> claims_;  // by rank: the last one
  std::set<int> arrived_;
};

}  // namespace decent
