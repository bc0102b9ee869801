#pragma once
// Tensors of a device through host memory: what is between a Communicator for tensors on the CPU
// and a GPU. The device itself is behind StagingDevice, so that all of this runs without one.
//
// Each operation has three parts, so that neither the training thread nor the network waits for the
// other's copies:
//
//   copy to the host     on a stream of its own, once the caller's stream has come here
//   the host's operation started by a thread that waits for that copy, in the order of the calls,
//                        which is the same on every worker; another thread waits for its end
//   copy to the device   on a further stream; wait() makes the caller's stream wait for its end
//
// Operations on CPU tensors take the same way without the copies: they keep their place in the
// order, and one thread alone calls into the host's group.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "decent/comm/communicator.h"

namespace decent {

/// A point in a device's work that comes later than the call that returned it.
class DeviceMoment {
 public:
  virtual ~DeviceMoment() = default;
  /// Blocks the calling thread until it has come.
  virtual void wait_on_host() = 0;
  /// Makes the device's current stream of the calling thread wait for it.
  virtual void wait_on_stream() = 0;
  virtual bool passed() = 0;
};
using Moment = std::shared_ptr<DeviceMoment>;

/// The copies of a device. The two streams for them are its own. Threads: copy_out is called by the
/// thread that calls the communicator, copy_in by another, both perhaps at once.
class StagingDevice {
 public:
  virtual ~StagingDevice() = default;
  /// Whether `tensor` lies on this kind of device.
  virtual bool holds(const at::Tensor& tensor) const = 0;
  /// `bytes` of host memory that the device can copy from and to by itself, as uint8.
  virtual at::Tensor allocate_host(std::int64_t bytes) = 0;
  /// Copies `tensor` to `host` (as many bytes), after all that the current stream was given up to
  /// now and not before `after` (may be null). Without `host` (undefined) only the moment comes.
  virtual Moment copy_out(const at::Tensor& tensor, const at::Tensor& host,
                          const Moment& after) = 0;
  /// Copies `host` to `tensor` (as many bytes).
  virtual Moment copy_in(const at::Tensor& host, const at::Tensor& tensor) = 0;
};

/// The members of `host`, for tensors of `device` and of the CPU. `host` is this communicator's
/// alone from now on. When the last group is destroyed nothing is waited for: operations that have
/// not begun are dropped, and wait() of theirs throws std::future_error.
std::shared_ptr<Communicator> stage(std::shared_ptr<Communicator> host,
                                    std::shared_ptr<StagingDevice> device);

}  // namespace decent
