#pragma once
// Host memory for copies from and to a device, used again: pinning memory takes longer than most
// copies.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "decent/comm/staging.h"

namespace decent {

struct HostBuffer {
  at::Tensor memory;  // uint8
  Moment last_use;    // the copy that reads or writes it last; null: none does
};

/// Threads: take() and the end of a buffer's use may happen on any.
class HostBuffers {
 public:
  explicit HostBuffers(std::shared_ptr<StagingDevice> device);

  /// A buffer of at least `bytes`, back here for others when the last reference is gone: the
  /// smallest free one that is not more than twice as large, else a new one.
  std::shared_ptr<HostBuffer> take(std::int64_t bytes);

 private:
  struct Free;
  std::shared_ptr<StagingDevice> device_;
  std::shared_ptr<Free> free_;
};

}  // namespace decent
