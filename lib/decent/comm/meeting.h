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
/// that trains and then evaluates), each of which must not meet the keys of the last. Every worker
/// counts its own starts in the store, and the n-th starts of all workers belong together.
class Meeting {
 public:
  /// Connects to the store, hosting it where that is this worker's part. `patience_setting`: what
  /// the user calls the time that workers wait for one another. Throws PeerLost.
  Meeting(const Launch& launch, std::chrono::milliseconds patience, std::string patience_setting);

  /// Every worker gives bytes of its own and gets those of all, by rank; each name once.
  /// Collective. Throws PeerLost where the store is lost or a worker does not show up in time, on
  /// one worker; SharedError with the same words on the others.
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
  std::int64_t start_ = 0;                 // this worker's, counted from 1
  c10::intrusive_ptr<c10d::Store> store_;  // root under this program's prefix
};

}  // namespace decent
