#pragma once
// Which processes are the workers of one program, at a store that outlives programs. Internal to
// this room.

#include <c10/util/intrusive_ptr.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decent/comm/launch.h"

namespace decent {

/// A launcher's store may see many processes of each rank: programs that a script starts in turn,
/// and restarts after a loss, where any process may be killed at any moment. So no worker can know
/// by itself which of the others it belongs to. Worker 0 decides it: it numbers its program and
/// calls that number. The processes of the other ranks answer the call, and worker 0 admits one
/// process of each rank. Only a process that is alive answers a new call, so whatever earlier
/// processes left in the store is without effect.
///
/// Every process also counts which program of its script it is. Worker 0 thereby recognises a
/// worker that is at an earlier or later program of the same script than itself.
class RollCall {
 public:
  /// `store`: the keys of all programs with this number of workers. Worker 0 begins its call.
  RollCall(c10::intrusive_ptr<c10d::Store> store, const Launch& launch);

  /// The number of this process's program: at once on worker 0, on others after worker 0 has
  /// admitted them. They have to ask again and again, since asking answers new calls. Throws
  /// PeerLost if a newer process has come as the same rank.
  std::optional<std::int64_t> program();

  /// The call that this process answered last; 0: none.
  std::int64_t answered() const { return answered_; }

  /// The ranks whose process of this program has ended, because the store shows a later process of
  /// the rank. On worker 0 this admits those that have come, so it has to ask until complete().
  std::vector<int> lost();

  /// Whether this process is admitted, and on worker 0 whether all are.
  bool complete() const;

  /// The ranks that are surely not there, as a worker sees it that no call reached: 0, and those
  /// that never came to this store.
  std::vector<int> absent();

 private:
  void arrive(std::int64_t call);
  void answer_new_call();
  void read_answer();
  bool admit(int rank);
  std::int64_t last_call();

  c10::intrusive_ptr<c10d::Store> store_;
  int rank_;
  int workers_;
  std::string process_;  // this process among all that ever come
  std::int64_t start_;   // which program of its script this process is, from 1
  std::int64_t answered_ = 0;
  std::optional<std::int64_t> program_;  // as soon as this process is admitted
  bool left_behind_ = false;             // worker 0 is at a later program of its script
  std::vector<std::string> admitted_;    // worker 0: the admitted process of each rank, or ""
};

}  // namespace decent
