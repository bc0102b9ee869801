#pragma once
// Exchanging a part of each bucket in a step: mixing is limited to it.

#include <ATen/core/Tensor.h>

#include "decent/codec/slices.h"
#include "decent/optim/bucket_update.h"

namespace decent {

/// The elements `slice` of a bucket: a view.
at::Tensor part_of(const at::Tensor& bucket, const Range& slice);

/// Memory for values of any slice of a bucket that is exchanged in `slices` parts: [longest slice].
at::Tensor memory_for_slices(const at::Tensor& bucket, std::int64_t slices, at::ScalarType type);

/// `mixing`, whose received array is that of `slice` alone, as a mixing of the whole bucket.
Mixing on_slice(const at::Tensor& bucket, const Range& slice, const Mixing& mixing);

/// A copy of the bucket with `values` on `slice`; `values` themselves if that is all of it.
at::Tensor with_slice(const at::Tensor& bucket, const Range& slice, const at::Tensor& values);

}  // namespace decent
