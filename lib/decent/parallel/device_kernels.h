#pragma once
// From a bucket's tensor to what works on it.

#include <ATen/core/Tensor.h>

#include "decent/optim/bucket_update.h"

namespace decent {

/// float32 or float64, which are all that check_storage lets pass.
Scalar scalar_of(const at::Tensor& bucket);

/// The kernels of the device that it is on; null for the CPU, as BucketStep has it. Throws
/// UserError where the CUDA library cannot be loaded.
const BucketKernels* kernels_of(const at::Tensor& bucket);

}  // namespace decent
