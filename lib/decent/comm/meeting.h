#pragma once
// The launcher's store, where workers meet before they are connected. Internal to this room.

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <chrono>
#include <string>
#include <vector>

#include "decent/comm/launch.h"

namespace decent {

/// The keys of one program: a launcher's store may outlive several that it starts in turn (a script
/// that trains and then evaluates), none of which may see the keys of another. Every worker counts
/// its own starts in the store, and the n-th starts of all workers belong together.
class Meeting {
 public:
  /// Connects to the store, which this worker hosts if that is its part. `patience`: how long
  /// workers wait for one another; `patience_setting`: the user's name for it. Throws PeerLost.
  Meeting(const Launch& launch, std::chrono::milliseconds patience, std::string patience_setting);

  /// Every worker gives bytes and gets the bytes of all, by rank. Use each name once. Collective.
  /// If the store is lost or a worker does not come in time, throws PeerLost on one worker and
  /// SharedError with the same message on the others.
  std::vector<std::string> share(const std::string& name, const std::string& own);

  /// For communicators, which wait for one another as long as the control plane lets them.
  c10d::Store& store() { return *store_; }
  void wait_for_ever();

 private:
  std::vector<std::string> share_unguarded(const std::string& name, const std::string& own);
  void set(const std::string& key, const std::string& text);
  std::string get(const std::string& key);
  bool wait_for_keys(const std::vector<std::string>& keys);
  void check_others_still_wait(const std::vector<std::string>& keys);
  [[noreturn]] void report_missing(const std::vector<std::string>& keys);
  [[noreturn]] void give_up();
  void tell_all_to_give_up(const std::string& message, int reporter);
  std::vector<int> missing_of(const std::vector<std::string>& keys);
  std::string starts_key(int rank) const;

  const Launch& launch_;
  std::chrono::milliseconds patience_;
  std::string patience_setting_;
  c10::intrusive_ptr<c10d::Store> root_;
  std::int64_t start_ = 0;                 // number of this worker's start, from 1
  c10::intrusive_ptr<c10d::Store> store_;  // root under this program's prefix
};

}  // namespace decent
