#pragma once
// What a model's buffers were before a step that may overflow: a forward whose values leave float16
// puts infinities into running means, for good.

#include <vector>

#include "decent/parallel/named_tensors.h"

namespace decent {

class BufferBackup {
 public:
  /// Copies the floating-point buffers, unless nothing may overflow.
  BufferBackup(const NamedTensors& buffers, bool may_overflow);

  /// Gives those that are not finite now their values back.
  void restore_non_finite() const;

 private:
  std::vector<at::Tensor> buffers_;
  std::vector<at::Tensor> copies_;
};

}  // namespace decent
