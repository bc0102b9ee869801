#pragma once
// Norms of gradients, for clipping.

#include <cmath>
#include <cstdint>
#include <span>

#include "decent/core/element.h"
#include "decent/optim/bucket_update.h"

namespace decent {

/// How many sums add_up_squares makes of these slices.
std::int64_t partial_sums(std::span<const BucketSlice> slices, Scalar scalar,
                          const BucketKernels* kernels = nullptr);

/// Adds up the squares of all gradients of `slices` (those without one count nothing), in double,
/// by the `kernels` of the device they are on (null: the CPU). `sums`, in that device's memory, has
/// partial_sums(slices) numbers: those of the first slice, then those of the second, and so on.
/// Does not wait for a GPU. No sum depends on the number of threads; one is not finite where a
/// gradient is not.
void add_up_squares(std::span<const BucketSlice> slices, Scalar scalar, double* sums,
                    const BucketKernels* kernels = nullptr);

/// What gradients of this norm are multiplied with: min(1, most / (norm + 1e-6)), as
/// torch.nn.utils.clip_grad_norm_ has it.
DECENT_ELEMENT double clip_coefficient(double norm, double most) {
  const double coefficient = most / (norm + 1e-6);
  return coefficient < 1.0 ? coefficient : 1.0;
}

/// From the partial sums of a bucket's squares to the factor of its gradients, where the sums are.
struct Clipping {
  const double* sums;
  std::int64_t count;
  double most;        // the norm to which gradients are clipped
  double loss_scale;  // of the gradients
  double* factor;     // is set: the clip coefficient over the loss scale, times *guard
  double* guard;      // becomes NaN, for good, where the sum is not finite

  DECENT_ELEMENT void run() const {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += sums[i];  // in one order: the same bits
    *guard += 0 * sum;                                        // 0 where it is finite
    *factor = *guard * (clip_coefficient(std::sqrt(sum) / loss_scale, most) / loss_scale);
  }
};

}  // namespace decent
