#pragma once
// A copy of a model's buffers before a step that may overflow: values beyond float16's range would
// leave infinities in running means for good.

#include <vector>

#include "decent/parallel/named_tensors.h"

namespace decent {

class BufferBackup {
 public:
  /// Copies the floating-point buffers, unless nothing may overflow.
  BufferBackup(const NamedTensors& buffers, bool may_overflow);

  /// Restores every buffer that is not finite any more.
  void restore_non_finite() const;

 private:
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> copies_;
};

}  // namespace decent
