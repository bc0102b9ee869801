#pragma once
// A group of workers that exchange tensors (torch.distributed's ProcessGroup, reduced to what this
// library needs). The backends are gloo for tensors on the CPU; NCCL, or gloo through host memory
// (comm/cuda.h), for tensors on GPUs; and a group of one worker that needs no network.
//
// Collective contract: every member calls the same operations of a group in the same order. All
// operations return a handle at once and run in the background. Tensors must be contiguous and on
// the CPU or the group's GPU, and nobody may touch them until wait() of the handle has returned.
// One thread at a time may call into a group. No destructor communicates.
//
// With tensors on a GPU this is a matter of streams: an operation begins when the current stream
// reaches its call, and wait() makes the current stream wait for its end.

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace decent {

/// An operation under way (torch.distributed's Work). wait() may be called twice, and the handle
/// may be destroyed only after it. One thread at a time uses a handle, not necessarily the one that
/// started the operation.
class PendingWork {
 public:
  virtual ~PendingWork() = default;
  /// Blocks until the tensors may be used again (on a GPU: by the current stream). Throws PeerLost
  /// if a peer is gone or silent.
  virtual void wait() = 0;
  /// Blocks until the operation is complete, also on a GPU, without changing streams. It is for
  /// threads that only observe, and does not replace wait().
  virtual void wait_on_host() { wait(); }
  /// Whether wait() would return at once. Before wait(), only all_reduce_sum and broadcast can
  /// return true.
  virtual bool done() = 0;
};
using Pending = std::unique_ptr<PendingWork>;

class Communicator {
 public:
  virtual ~Communicator() = default;

  /// This worker's number in this group, in [0, size()), and the number of members.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Elementwise sum over all members, in place, with the same bits on every member. The same shape
  /// and dtype everywhere: float16, bfloat16, float32, float64, int32 or int64.
  virtual Pending all_reduce_sum(const at::Tensor& tensor) = 0;
  /// Every member's tensor gets the values of member `root`'s. The same shape and dtype everywhere,
  /// any dtype.
  virtual Pending broadcast(const at::Tensor& tensor, int root) = 0;
  /// Sends `send` to member `peer` and receives as many bytes from it into `receive`; `peer` makes
  /// the mirrored call with the same tag.
  virtual Pending exchange(const at::Tensor& send, const at::Tensor& receive, int peer,
                           int tag) = 0;
  /// A new group of some members, given by their numbers in this group; member i of the new group
  /// is members[i]. Exactly these members call it.
  virtual std::shared_ptr<Communicator> subgroup(const std::vector<int>& members) = 0;
  /// Returns when every member has called it.
  virtual void barrier() = 0;
};

/// The group of one worker.
std::shared_ptr<Communicator> make_single_worker();

}  // namespace decent
