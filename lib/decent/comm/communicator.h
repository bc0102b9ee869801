#pragma once
// A group of workers that exchange tensors. Backends: gloo; for tensors on GPUs NCCL, or gloo by
// way of host memory (comm/cuda.h); and a group of one that needs no network.
//
// Collective contract: every member calls the same operations of one group in the same order. All
// operations start at once and return a handle; tensors must be contiguous, on the CPU or the
// group's GPU, and nobody touches them until the handle was waited for. One thread at a time may
// call into a group. Nothing here communicates in a destructor.
//
// On a GPU "at once" and "until" are of streams: an operation begins once the current stream has
// come to its call, and wait() makes the current stream wait for its end.

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

namespace decent {

/// An operation under way. Waiting twice is allowed; a handle may be dropped only after waiting.
/// One thread uses it at a time, which need not be the one that started the operation.
class PendingWork {
 public:
  virtual ~PendingWork() = default;
  /// Blocks until the tensors may be used again, those on a GPU by the current stream. Throws
  /// PeerLost where a peer is gone or silent.
  virtual void wait() = 0;
  /// Blocks until the operation is over, on a GPU as well, and leaves streams alone: for threads
  /// that watch. Does not take the place of wait().
  virtual void wait_on_host() { wait(); }
  /// Whether wait() would return at once. Only all_reduce_sum and broadcast know before they are
  /// waited for.
  virtual bool done() = 0;
};
using Pending = std::unique_ptr<PendingWork>;

class Communicator {
 public:
  virtual ~Communicator() = default;

  /// This worker's number in this group, and the number of its members.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Elementwise sum over all members, in place; the same bits on every member. float16, bfloat16,
  /// float32, float64, int32, int64.
  virtual Pending all_reduce_sum(const at::Tensor& tensor) = 0;
  /// Everyone gets the root's tensor. Any element type.
  virtual Pending broadcast(const at::Tensor& tensor, int root) = 0;
  /// Sends `send` to member `peer` and receives as many bytes from it into `receive`; `peer` makes
  /// the mirrored call with the same tag.
  virtual Pending exchange(const at::Tensor& send, const at::Tensor& receive, int peer,
                           int tag) = 0;
  /// A group of some members, given by their numbers in this group, in that order. Called by
  /// exactly those.
  virtual std::shared_ptr<Communicator> subgroup(const std::vector<int>& members) = 0;
  /// Returns when every member has called it.
  virtual void barrier() = 0;
};

/// The group of one.
std::shared_ptr<Communicator> make_single_worker();

}  // namespace decent
