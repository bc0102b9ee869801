#pragma once
// Buffers that a module's forward replaces.

#include "decent/parallel/named_tensors.h"

namespace decent {

/// `held` are a module's buffers as they were taken over, `now` as it has them. Where forward put
/// another tensor in a buffer's place (self.count = self.count + 1), the held memory gets its value
/// and the new tensor that memory. Throws UserError where shape or type changed.
void settle_buffers(const NamedTensors& held, const NamedTensors& now);

}  // namespace decent
