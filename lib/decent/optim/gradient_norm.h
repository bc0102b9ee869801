#pragma once
// Norms of gradients, for clipping.

#include <cmath>
#include <cstdint>
#include <span>

#include "decent/core/element.h"
#include "decent/optim/bucket_update.h"

namespace decent {

/// The number of sums that add_up_squares computes for these slices.
std::int64_t partial_sums(std::span<const BucketSlice> slices, Scalar scalar,
                          const BucketKernels* kernels = nullptr);

/// Adds up the squares of all gradients of `slices` (slices without a gradient count nothing), in
/// double, with the `kernels` of the gradients' device (null: the CPU). `sums`, in that device's
/// memory, has partial_sums(slices) numbers: first the sums of the first slice, then those of the
/// second, and so on. Does not wait for a GPU. No sum depends on the number of threads. A sum is
/// not finite if one of its gradients is not.
void add_up_squares(std::span<const BucketSlice> slices, Scalar scalar, double* sums,
                    const BucketKernels* kernels = nullptr);

/// The factor for gradients of this norm: min(1, most / (norm + 1e-6)), as in
/// torch.nn.utils.clip_grad_norm_.
DECENT_ELEMENT double clip_coefficient(double norm, double most) {
  const double coefficient = most / (norm + 1e-6);
  return coefficient < 1.0 ? coefficient : 1.0;
}

/// Computes the factor of a bucket's gradients from the partial sums of their squares, in the
/// memory where the sums are.
struct Clipping {
  const double* sums;
  std::int64_t count;
  double most;        // the norm to which gradients are clipped
  double loss_scale;  // of the gradients
  double* factor;     // output: the clip coefficient over the loss scale, times *guard
  double* guard;      // becomes NaN, and stays so, if the sum is not finite

  DECENT_ELEMENT void run() const {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += sums[i];  // in one order: the same bits
    *guard += 0 * sum;                                        // adds 0 if the sum is finite
    *factor = *guard * (clip_coefficient(std::sqrt(sum) / loss_scale, most) / loss_scale);
  }
};

}  // namespace decent
