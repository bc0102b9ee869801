#include "decent/optim/gradient_norm.h"

#include <algorithm>

#include "decent/optim/bucket_kernels.h"

namespace decent {

double sum_of_squares(std::span<const BucketSlice> slices, Scalar scalar,
                      const BucketKernels* kernels) {
  return or_cpu(kernels).with(scalar,
                              [&](const auto& typed) { return typed.sum_of_squares(slices); });
}

double clip_coefficient(double norm, double most) { return std::min(1.0, most / (norm + 1e-6)); }

}  // namespace decent
