#pragma once
// The gradients of one bucket, as its update takes them.

#include <cstddef>
#include <vector>

#include "decent/optim/bucket_update.h"
#include "decent/parallel/replica.h"

namespace decent {

struct BucketGradients {
  std::vector<BucketSlice> slices;  // in ascending order; a parameter may come in several parts
  std::vector<bool> present;        // by place in the bucket: whether the parameter has a gradient
};

/// This worker's own gradients, .grad of each parameter of the bucket. `slices` are those
/// parameters without their gradients. It changes only the layout of gradients, so it may be called
/// twice in a step. Throws UserError for a sparse gradient.
BucketGradients own_gradients(const Replica& replica, std::size_t bucket,
                              std::vector<BucketSlice> slices);

}  // namespace decent
