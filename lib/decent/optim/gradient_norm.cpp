#include "decent/optim/gradient_norm.h"

#include "decent/optim/bucket_kernels.h"

namespace decent {

std::int64_t partial_sums(std::span<const BucketSlice> slices, Scalar scalar,
                          const BucketKernels* kernels) {
  return or_cpu(kernels).with(scalar,
                              [&](const auto& typed) { return typed.partial_sums(slices); });
}

void add_up_squares(std::span<const BucketSlice> slices, Scalar scalar, double* sums,
                    const BucketKernels* kernels) {
  or_cpu(kernels).with(scalar, [&](const auto& typed) { typed.add_up_squares(slices, sums); });
}

}  // namespace decent
