#pragma once
// The agreement on the step after which all workers stop.
//
// Every worker promises to finish the step that it is in and to begin no other one; the last step
// of all is the highest of those. Whoever is behind goes on to it: nobody waits for a worker that
// waits for him.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "decent/comm/control/control_types.h"

namespace decent {

/// One worker's view of it. Not safe to use from several threads at once.
class StopVote {
 public:
  explicit StopVote(std::size_t workers) : promised_(workers) {}

  /// A stop was asked for. False where one had been already, which counts.
  bool open(int signal, int rank);
  bool is_open() const { return stop_.has_value(); }

  /// Worker `rank` is in step `step`, its last but for those that others are ahead.
  void promise(std::size_t rank, std::int64_t step);

  /// Whether every worker has promised, so that the last step is known.
  bool is_settled() const { return settled_; }
  /// What was asked for; its last step once it is settled.
  Stop stop() const { return stop_.value_or(Stop{}); }

 private:
  void settle();

  std::vector<std::optional<std::int64_t>> promised_;  // by rank
  std::optional<Stop> stop_;
  bool settled_ = false;
};

}  // namespace decent
