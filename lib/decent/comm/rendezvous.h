#pragma once
// The launcher's store, where workers meet before they are connected. Internal to this room.

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "decent/comm/launch.h"
#include "decent/comm/roll_call.h"

namespace decent {

/// The keys of one program: a launcher's store may outlive several that it starts in turn (a script
/// that trains and then evaluates) or again after a loss, none of which may see the keys of
/// another. See RollCall for the processes that belong to one program.
class Rendezvous {
 public:
  /// Connects to the store, which this worker hosts if that is its part, and waits until worker 0
  /// has admitted this one. `patience`: how long workers wait for one another; `patience_setting`:
  /// the user's name for it. Throws as share() does.
  Rendezvous(const Launch& launch, std::chrono::milliseconds patience,
             std::string patience_setting);

  /// Every worker gives bytes and gets the bytes of all, by rank. Use each name once. Collective.
  /// If the store is lost or a worker does not come in time, throws PeerLost on one worker and
  /// SharedError with the same message on the others.
  std::vector<std::string> share(const std::string& name, const std::string& own);

  /// Whether torchrun's agents found one another at this store, which then belongs to a rendezvous
  /// of a fixed list of machines (static).
  bool agents_meet_here() const { return agents_meet_here_; }

  /// For communicators, which wait for one another as long as the control plane lets them.
  c10d::Store& store() { return *store_; }
  void wait_for_ever();

 private:
  using Clock = std::chrono::steady_clock;
  using StorePointer = c10::intrusive_ptr<c10d::Store>;

  void join();
  StorePointer keys_under(const std::string& prefix) const;
  std::vector<std::string> share_unguarded(const std::string& name, const std::string& own);
  void set(const std::string& key, const std::string& text);
  std::string get(const std::string& key);
  bool wait_until(const std::function<bool()>& come, Clock::time_point deadline);
  void check_nobody_is_lost();
  std::string not_shown_up(const std::vector<int>& ranks) const;
  [[noreturn]] void report_absent();
  [[noreturn]] void report_missing(const std::vector<std::string>& keys);
  [[noreturn]] void give_up();
  [[noreturn]] void tell_all_to_give_up(const std::string& message, int reporter);
  std::vector<int> missing_of(const std::vector<std::string>& keys);

  const Launch& launch_;
  std::chrono::milliseconds patience_;
  std::string patience_setting_;
  bool agents_meet_here_ = false;
  StorePointer root_;  // the keys of all programs of as many workers
  std::optional<RollCall> roll_;
  StorePointer store_;                         // root under this program's prefix
  std::optional<Clock::time_point> deadline_;  // of joining and the first share, together
};

}  // namespace decent
