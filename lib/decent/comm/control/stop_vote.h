#pragma once
// The agreement on the step after which all workers stop.
//
// Every worker promises to finish the step that it is in and to begin no other one. The highest of
// these steps is the last step of all workers. Workers that are behind continue to it, so no two
// workers wait for each other.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "decent/comm/control/control_types.h"

namespace decent {

/// One worker's view of the agreement. Not thread-safe.
class StopVote {
 public:
  explicit StopVote(std::size_t workers) : promised_(workers) {}

  /// A stop is asked for. Returns false if one was asked for before; the first one counts.
  bool open(int signal, int rank);
  bool is_open() const { return stop_.has_value(); }

  /// Worker `rank` promises to begin no step after `step` by itself.
  void promise(std::size_t rank, std::int64_t step);

  /// Whether every worker has promised, so that the last step is known.
  bool is_settled() const { return settled_; }
  /// The stop that was asked for; its last step is valid once is_settled().
  Stop stop() const { return stop_.value_or(Stop{}); }

 private:
  void settle();

  std::vector<std::optional<std::int64_t>> promised_;  // by rank
  std::optional<Stop> stop_;
  bool settled_ = false;
};

}  // namespace decent
