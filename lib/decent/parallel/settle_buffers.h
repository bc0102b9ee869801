#pragma once
// Buffers that a module's forward replaces by new tensors.

#include "decent/parallel/named_tensors.h"

namespace decent {

/// `held` are a module's buffers as they were taken over, `now` its current ones. If forward
/// replaced a buffer by a new tensor (self.count = self.count + 1), its value is copied to the held
/// memory, and the new tensor becomes a view of that memory. Throws UserError if shape or dtype
/// changed.
void settle_buffers(const NamedTensors& held, const NamedTensors& now);

}  // namespace decent
