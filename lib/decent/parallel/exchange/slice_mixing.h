#pragma once
// Exchanging a part of each bucket in a step, and mixing with values that lie in several places.

#include <ATen/core/Tensor.h>

#include <vector>

#include "decent/codec/slices.h"
#include "decent/comm/communicator.h"
#include "decent/optim/bucket_update.h"

namespace decent {

/// The elements `slice` of a bucket: a view.
at::Tensor part_of(const at::Tensor& bucket, const Range& slice);

/// Memory for values of any slice of a bucket that is exchanged in `slices` parts: [longest slice].
at::Tensor memory_for_slices(const at::Tensor& bucket, std::int64_t slices, at::ScalarType type);

/// Mixing of the bucket by the coefficients of `mixing`, with received values for `slice` alone,
/// which are read in place.
Mixing on_slice(const at::Tensor& bucket, const Range& slice, const Mixing& mixing,
                const std::vector<ReceivedPart>& received);

/// A copy of the bucket with `values` on `slice`; `values` themselves if that is all of it.
at::Tensor with_slice(const at::Tensor& bucket, const Range& slice, const at::Tensor& values);

/// The parts as one tensor; a single part is not copied.
at::Tensor whole_of(const std::vector<ReceivedPart>& parts);

}  // namespace decent
