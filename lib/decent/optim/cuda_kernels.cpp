#include "decent/core/cuda_library.h"
#include "decent/optim/bucket_kernels.h"

namespace decent {

const BucketKernels& cuda_kernels() {
  using Get = const BucketKernels*();
  static const BucketKernels* const kernels =
      reinterpret_cast<Get*>(cuda_symbol("decent_cuda_bucket_kernels"))();
  return *kernels;
}

}  // namespace decent
