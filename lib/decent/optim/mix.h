#pragma once
// Mixing of one flat bucket without an update, for optimizers outside this library.

#include <cstdint>

#include "decent/optim/bucket_update.h"

namespace decent {

/// Replaces x by z (see Mixing) over `numel` elements, including padding. The arrays must not
/// overlap, and x must be the bucket for which the mixing was made. `kernels` belong to the arrays'
/// device (null: the CPU), as in BucketStep. The result does not depend on the number of threads.
void mix(void* x, std::int64_t numel, Scalar scalar, const Mixing& mixing,
         const BucketKernels* kernels = nullptr);

}  // namespace decent
