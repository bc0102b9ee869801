#include "decent/parallel/device_kernels.h"

#include "decent/optim/bucket_kernels.h"

namespace decent {

Scalar scalar_of(const at::Tensor& bucket) {
  return bucket.scalar_type() == at::kDouble ? Scalar::float64 : Scalar::float32;
}

const BucketKernels* kernels_of(const at::Tensor& bucket) {
  return bucket.is_cuda() ? &cuda_kernels() : nullptr;
}

}  // namespace decent
