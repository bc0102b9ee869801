#pragma once
// How long training waits for other workers.

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "decent/comm/communicator.h"

namespace decent {

/// Adds up the time of waits. On the CPU the thread waits. On a GPU a wait returns to the thread at
/// once, and the stream stands still; the time between an event before the wait and one behind it
/// is known once the GPU has come to both, perhaps a step later.
class WaitTime {
 public:
  /// `make` makes the device's events; null on the CPU.
  using MakeEvent = std::function<std::unique_ptr<TimedEvent>()>;
  explicit WaitTime(MakeEvent make) : make_(std::move(make)) {}

  /// Calls `work`, which waits for other workers.
  void measure(const std::function<void()>& work);
  /// The seconds of all waits that are known to be over since the last call. Does not block.
  double take_seconds();

 private:
  struct Wait {
    std::unique_ptr<TimedEvent> begin;
    std::unique_ptr<TimedEvent> end;
  };

  Wait new_wait();
  void add_passed();

  MakeEvent make_;
  double seconds_ = 0;
  std::deque<Wait> under_way_;  // in the order of the stream
  std::vector<Wait> free_;      // events to reuse
};

}  // namespace decent
