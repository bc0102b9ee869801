#pragma once
// Mixing of one flat bucket by itself, for optimizers that are not ours.

#include <cstdint>

#include "decent/optim/bucket_update.h"

namespace decent {

/// x = self * x + other * received over `numel` elements, padding included; nothing where nothing
/// was received. The arrays do not overlap; `kernels` are those of the device they are on (null:
/// the CPU), as in BucketStep. The result does not depend on the number of threads.
void mix(void* x, std::int64_t numel, Scalar scalar, const Mixing& mixing,
         const BucketKernels* kernels = nullptr);

}  // namespace decent
