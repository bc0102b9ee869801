#pragma once
// The element type and the kernels for a bucket's tensor.

#include <ATen/core/Tensor.h>

#include "decent/optim/bucket_update.h"

namespace decent {

/// float32 or float64; check_storage permits no other type.
Scalar scalar_of(const at::Tensor& bucket);

/// The kernels of the bucket's device; null for the CPU, as in BucketStep. Throws UserError if the
/// CUDA library cannot be loaded.
const BucketKernels* kernels_of(const at::Tensor& bucket);

}  // namespace decent
