#include "decent/core/cuda_library.h"
#include "decent/optim/bucket_kernels.h"

namespace decent {

const BucketKernels& cuda_kernels() {
  static const BucketKernels* const kernels =
      cuda_function<const BucketKernels*()>("decent_cuda_bucket_kernels")();
  return *kernels;
}

}  // namespace decent
