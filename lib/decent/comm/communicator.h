#pragma once
// A group of workers that exchange tensors (torch.distributed's ProcessGroup, reduced to what this
// library needs). The backends are shared memory between workers of one machine and gloo between
// machines for tensors on the CPU; NCCL, or gloo through host memory (comm/cuda.h), for tensors on
// GPUs; and a group of one worker that needs no network.
//
// Collective contract: every member calls the same operations of a group in the same order. All
// operations return a handle at once and run in the background. Tensors must be contiguous and on
// the CPU or the group's GPU, and nobody may touch them until wait() of the handle has returned.
// One thread at a time may call into a group. No destructor communicates.
//
// For tensors on a GPU, streams wait instead of threads: an operation begins when the current
// stream reaches its call, and wait() makes the current stream wait for its end.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace decent {

class LostWorkers;

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

/// A point in the work of a device's stream, and the time at which the device reached it.
class TimedEvent {
 public:
  virtual ~TimedEvent() = default;
  /// Moves the event to the end of all work given so far to the calling thread's current stream.
  virtual void record() = 0;
  /// Whether the device has reached the event.
  virtual bool passed() = 0;
  /// Both must have passed.
  virtual double seconds_since(TimedEvent& earlier) = 0;
};

/// A contiguous part of the received values.
struct ReceivedPart {
  std::int64_t begin = 0;  // index of the first of them in the whole
  at::Tensor values;       // [numel], of the dtype that was sent
};

/// An operation whose result is read in place, perhaps in another worker's memory. The result may
/// be read from the return of wait() until this object is destroyed, and must not be written.
/// Destroy the object soon: until then the other worker cannot reuse the memory.
class PendingReceived : public PendingWork {
 public:
  /// The whole result in consecutive parts. Call it after wait().
  virtual std::vector<ReceivedPart> parts() const = 0;
};

/// Makes a tensor to receive values into, if they cannot be read in place.
using Room = std::function<at::Tensor()>;

/// Values that are received into a tensor of the caller. (Defined in the header, so that the
/// library for GPUs needs no code of this room.)
class ReceivedInRoom final : public PendingReceived {
 public:
  ReceivedInRoom(at::Tensor room, Pending work) : room_(std::move(room)), work_(std::move(work)) {}
  void wait() override { work_->wait(); }
  void wait_on_host() override { work_->wait_on_host(); }
  bool done() override { return work_->done(); }
  std::vector<ReceivedPart> parts() const override { return {{.begin = 0, .values = room_}}; }

 private:
  at::Tensor room_;
  Pending work_;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  /// This worker's number in this group, in [0, size()), and the number of members.
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Elementwise sum over all members, in place, with the same bits on every member. Shape and
  /// dtype are the same on all: float16, bfloat16, float32, float64, int32 or int64.
  virtual Pending all_reduce_sum(const at::Tensor& tensor) = 0;
  /// Copies the tensor of member `root` to all members, which have the same shape and (any) dtype.
  virtual Pending broadcast(const at::Tensor& tensor, int root) = 0;
  /// Sends `send` to member `peer` and receives as many bytes from it into `receive`; `peer` makes
  /// the mirrored call with the same tag.
  virtual Pending exchange(const at::Tensor& send, const at::Tensor& receive, int peer,
                           int tag) = 0;
  /// Whether member `peer` reads in place what this worker sends from memory_to_send().
  virtual bool reads_in_place(int /*peer*/) const { return false; }
  /// Memory to send from: uint8 [bytes], aligned to 128 bytes. Undefined if no member of this group
  /// reads in place. Other memory may be sent as well, but may be copied first.
  virtual at::Tensor memory_to_send(std::int64_t /*bytes*/) { return {}; }
  /// Blocks until all readers are done with `memory`, a result of memory_to_send(), so that it may
  /// be written again.
  virtual void wait_until_read(const at::Tensor& /*memory*/) {}

  /// exchange() without a copy if the backend can do that. Otherwise values are received into
  /// `room()`, which has the shape and dtype of `send`.
  virtual std::shared_ptr<PendingReceived> exchange_views(const at::Tensor& send, int peer, int tag,
                                                          const Room& room) {
    const at::Tensor place = room();
    return std::make_shared<ReceivedInRoom>(place, exchange(send, place, peer, tag));
  }
  /// The elementwise sum over all members, with the same bits on every member, without a copy if
  /// the backend can do that. Afterwards `send` is undefined if it is memory_to_send().
  virtual std::shared_ptr<PendingReceived> sum_views(const at::Tensor& send, const Room& room) {
    const at::Tensor place = room();
    place.copy_(send);
    return std::make_shared<ReceivedInRoom>(place, all_reduce_sum(place));
  }

  /// A new group of some members, given by their numbers in this group; member i of the new group
  /// is members[i]. Exactly these members call it.
  virtual std::shared_ptr<Communicator> subgroup(const std::vector<int>& members) = 0;
  /// Returns when every member has called it.
  virtual void barrier() = 0;
  /// An event of the device of `tensor` if wait() makes that device wait and not the thread; null
  /// if the thread itself waits, so that its own clock measures the wait.
  virtual std::unique_ptr<TimedEvent> timed_event(const at::Tensor& /*tensor*/) { return nullptr; }
  /// Makes the connections that exchange() with `peers` needs, if the first exchange would make
  /// them. Each of these peers calls it at the same time, with this worker among its peers.
  virtual void connect_pairs(const std::vector<int>& /*peers*/) {}
  /// Blocks until the device has completed everything that the current stream waits for, also in
  /// groups made from this one, or until `give_up` returns true. Then this worker may leave.
  virtual void drain(const std::function<bool()>& /*give_up*/) {}
  /// From now on operations with one of `lost` throw GivenUp, and so do the waits for those under
  /// way, instead of PeerLost; also in groups made from this one later. Its ranks are those of this
  /// group, which has all workers. Returns false if the backend cannot give up operations.
  virtual bool go_on_without(const std::shared_ptr<LostWorkers>& /*lost*/) { return false; }
};

/// The group of one worker.
std::shared_ptr<Communicator> make_single_worker();

}  // namespace decent
