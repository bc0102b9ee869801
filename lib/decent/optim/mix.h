#pragma once
// Mixing of one flat bucket by itself, for optimizers that are not ours.

#include <cstdint>

#include "decent/optim/bucket_update.h"

namespace decent {

/// x = self * x + other * received over `numel` elements, padding included, with the same bits as
/// the updates of BucketUpdate give; nothing where nothing was received. The arrays do not overlap.
/// The result does not depend on the number of threads.
void mix(void* x, std::int64_t numel, Scalar scalar, const Mixing& mixing);

}  // namespace decent
