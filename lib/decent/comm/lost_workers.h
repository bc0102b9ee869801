#pragma once
// The workers that a run has lost while it finishes its last step without them. The control plane
// adds them; operations with peers ask, and end at once if a lost worker takes part in them.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "decent/core/error.h"

namespace decent {

/// An operation was given up because a worker that takes part in it is lost. The run goes on to the
/// end of its step.
class GivenUp : public PeerLost {
 public:
  using PeerLost::PeerLost;
};

/// Any thread may call all methods. Workers are ranks of the run.
class LostWorkers {
 public:
  using Ranks = std::vector<int>;

  /// Ends the waits of all operations that `rank` takes part in.
  void add(int rank);

  bool any() const { return any_.load(std::memory_order_acquire); }
  /// Whether one of these workers is lost.
  bool any_of(const Ranks& ranks) const;

  /// For an operation with these workers that failed: whether one of them is lost. The news may
  /// come a moment later than the error, so it is waited for.
  bool confirms(const Ranks& ranks) const;

  /// While it lives, `ended` is called once if one of `ranks` is lost, at once if one is already.
  /// It may be called by another thread, which holds a lock of the LostWorkers: it must not call
  /// them.
  class Watch {
   public:
    Watch(LostWorkers& lost, Ranks ranks, std::function<void()> ended);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    LostWorkers& lost_;
    std::uint64_t number_;
  };

 private:
  struct Watched {
    Ranks ranks;
    std::function<void()> ended;
  };
  bool has_any(const Ranks& ranks) const;

  std::atomic<bool> any_ = false;
  mutable std::mutex mutex_;  // guards what follows
  mutable std::condition_variable changed_;
  std::set<int> ranks_;
  std::map<std::uint64_t, Watched> watches_;
  std::uint64_t next_ = 0;
};

/// Runs `work`, an operation with the workers `ranks`. Throws GivenUp in place of any PeerLost if
/// one of them is lost, and at once if one is lost already. `lost` may be null: then nobody goes on
/// without a lost worker.
template <typename Work>
auto unless_lost(const LostWorkers* lost, const LostWorkers::Ranks& ranks, const Work& work) {
  if (lost != nullptr && lost->any_of(ranks))
    throw GivenUp("a worker that takes part in an operation is lost");
  try {
    return work();
  } catch (const GivenUp&) {
    throw;
  } catch (const PeerLost& error) {
    if (lost == nullptr || !lost->confirms(ranks)) throw;
    throw GivenUp(error.what());
  }
}

}  // namespace decent
