#pragma once
// What workers give to a gather, until the call that waits for it takes it: a part of Control.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "decent/core/error.h"

namespace decent {

/// Threads: give(), close() and fail() are called by the control thread, take() and wait_closed()
/// by any others, each topic by one thread at a time.
class GatherBox {
 public:
  explicit GatherBox(std::size_t workers)
      : given_(workers), closed_(workers, false), lost_(workers, false) {}

  void give(std::size_t rank, const std::string& topic, std::string bytes);

  /// Worker `rank` has left in order and gives nothing more.
  void close(std::size_t rank);

  /// Worker `rank` is lost, and the run goes on to the end of its step. Gathers that are not
  /// complete throw GivenUp.
  void lose(std::size_t rank);

  /// The run has failed: nobody gives anything more.
  void fail(ExitCode code, std::string message);

  /// Waits until every worker has given its next bytes under `topic`, and returns them by rank.
  /// Throws PeerLost naming a worker that ended before it gave its bytes, GivenUp if one is lost
  /// and the bytes are not all there, and the error of fail().
  std::vector<std::string> take(const std::string& topic);

  /// The same, but waits for no lost worker, whose bytes are missing in the result.
  std::vector<std::optional<std::string>> take_of_survivors(const std::string& topic);

  /// Those that are left and have not given their bytes under `topic` yet.
  std::vector<int> missing(const std::string& topic);

  /// Returns when close(rank) or fail() was called, or after `most`.
  void wait_closed(std::size_t rank, std::chrono::milliseconds most);

 private:
  using Queue = std::deque<std::string>;  // in the order of the calls of its topic

  bool has_given(std::size_t rank, const std::string& topic) const;
  bool all_have_given(const std::string& topic) const;
  std::optional<std::size_t> who_never_will(const std::string& topic) const;
  std::vector<int> awaited(const std::string& topic) const;
  std::string take_one(std::size_t rank, const std::string& topic);

  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::vector<std::map<std::string, Queue>> given_;  // by rank; no queue is empty
  std::vector<bool> closed_;                         // by rank
  std::vector<bool> lost_;                           // by rank
  std::optional<ExitCode> failed_;
  std::string failure_;
};

}  // namespace decent
