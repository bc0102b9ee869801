#pragma once
// What tensors of a model were before it ran: a forward whose values leave float16 puts infinities
// into running means, for good, and an evaluation must leave nothing behind at all.

#include "decent/parallel/named_tensors.h"

namespace decent {

class BufferBackup {
 public:
  explicit BufferBackup(NamedTensors tensors);

  /// Gives all of them their values back.
  void restore() const;
  /// Gives those that are not finite now their values back.
  void restore_non_finite() const;

 private:
  NamedTensors tensors_;
  NamedTensors copies_;
};

}  // namespace decent
