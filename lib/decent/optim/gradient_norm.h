#pragma once
// Norms of gradients, for clipping.

#include <span>

#include "decent/optim/bucket_update.h"

namespace decent {

/// Sum of the squares of all gradients of `slices` (those without one count nothing), in double, by
/// the `kernels` of the device they are on (null: the CPU).
/// Does not depend on the number of threads. Not finite where a gradient is not.
double sum_of_squares(std::span<const BucketSlice> slices, Scalar scalar,
                      const BucketKernels* kernels = nullptr);

/// What gradients of this norm are multiplied with: min(1, most / (norm + 1e-6)), as
/// torch.nn.utils.clip_grad_norm_ has it.
double clip_coefficient(double norm, double most);

}  // namespace decent
