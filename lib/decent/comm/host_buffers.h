#pragma once
// Host memory for copies from and to a device. It is reused, because pinning memory takes longer
// than most copies.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>

#include "decent/comm/staging.h"

namespace decent {

struct HostBuffer {
  at::Tensor memory;  // uint8
  Event last_use;     // the last copy that reads or writes it; null: none
};

/// Threads: any thread may call take() and destroy a buffer.
class HostBuffers {
 public:
  explicit HostBuffers(std::shared_ptr<StagingDevice> device);

  /// A buffer of at least `bytes`: the smallest free one that is at most twice as large, else a new
  /// one. It becomes free again when the last reference to it is destroyed.
  std::shared_ptr<HostBuffer> take(std::int64_t bytes);

 private:
  struct Free;
  std::shared_ptr<StagingDevice> device_;
  std::shared_ptr<Free> free_;
};

}  // namespace decent
