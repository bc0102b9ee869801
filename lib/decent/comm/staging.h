#pragma once
// Sends tensors of a device through host memory, with a Communicator for tensors on the CPU. The
// device itself is behind StagingDevice, so that tests can run all of this without a GPU.
//
// Each operation has three parts, so that neither the training thread nor the network waits for
// copies of the other:
//
//   copy to the host     on a stream of its own, once the caller's stream has reached the call
//   the host's operation a thread waits for that copy and starts the operation, in the order of the
//                        calls, which is the same on every worker; another thread waits for its end
//   copy to the device   on another stream; wait() makes the caller's stream wait for its end
//
// Operations on CPU tensors take the same path without the copies. So they keep their place in the
// order, and only one thread calls into the host's group.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "decent/comm/communicator.h"

namespace decent {

/// A point in the work of a device stream, as torch::Event. It is passed at some time after the
/// call that returned it.
class DeviceEvent {
 public:
  virtual ~DeviceEvent() = default;
  /// Blocks the calling thread until it has passed.
  virtual void wait_on_host() = 0;
  /// Makes the device's current stream of the calling thread wait for it.
  virtual void wait_on_stream() = 0;
  virtual bool passed() = 0;
};
using Event = std::shared_ptr<DeviceEvent>;

/// Copies between a device and the host, on two streams that the object owns. Threads: the thread
/// that calls the communicator calls copy_out, another one calls copy_in, perhaps at the same time.
class StagingDevice {
 public:
  virtual ~StagingDevice() = default;
  /// Whether `tensor` lies on this kind of device.
  virtual bool holds(const at::Tensor& tensor) const = 0;
  /// A uint8 tensor of `bytes` in host memory that the device can copy from and to (pinned).
  virtual at::Tensor allocate_host(std::int64_t bytes) = 0;
  /// Copies `tensor` to `host` (of the same size in bytes), after everything in the current stream
  /// so far and after `after` (may be null). If `host` is undefined, only returns the event.
  virtual Event copy_out(const at::Tensor& tensor, const at::Tensor& host, const Event& after) = 0;
  /// Copies `host` to `tensor` (of the same size in bytes).
  virtual Event copy_in(const at::Tensor& host, const at::Tensor& tensor) = 0;
  /// See Communicator::timed_event().
  virtual std::unique_ptr<TimedEvent> timed_event() { return nullptr; }
};

/// A communicator of the members of `host`, for tensors on `device` and on the CPU. Nobody else may
/// use `host` from now on. The destructor of the last group waits for nothing: operations that have
/// not begun are dropped, and their wait() throws std::future_error.
std::shared_ptr<Communicator> stage(std::shared_ptr<Communicator> host,
                                    std::shared_ptr<StagingDevice> device);

}  // namespace decent
