#include "decent/parallel/exchange/slice_mixing.h"

#include <ATen/ops/empty.h>

#include "decent/optim/mix.h"
#include "decent/parallel/device_kernels.h"

namespace decent {
namespace {

bool is_all_of(const at::Tensor& bucket, const Range& slice) {
  return slice == Range{0, bucket.numel()};
}

const void* from_element(const at::Tensor& bucket, const void* array, std::int64_t element) {
  return static_cast<const char*>(array) + element * bucket.element_size();
}

}  // namespace

at::Tensor part_of(const at::Tensor& bucket, const Range& slice) {
  return bucket.narrow(0, slice.begin, slice.numel());
}

at::Tensor memory_for_slices(const at::Tensor& bucket, std::int64_t slices, at::ScalarType type) {
  return at::empty({longest_part(bucket.numel(), slices)}, bucket.options().dtype(type));
}

Mixing on_slice(const at::Tensor& bucket, const Range& slice, const Mixing& mixing) {
  if (mixing.received == nullptr || is_all_of(bucket, slice)) return mixing;
  auto* const x = static_cast<char*>(bucket.data_ptr());
  const auto mix_piece = [=](std::int64_t begin, std::int64_t end) {
    const Range piece = overlap({begin, end}, slice);
    if (piece.empty()) return;
    Mixing part = mixing;
    part.received = from_element(bucket, mixing.received, piece.begin - slice.begin);
    mix(x + piece.begin * bucket.element_size(), piece.numel(), scalar_of(bucket), part,
        kernels_of(bucket));
  };
  return {.in_place = mix_piece};
}

at::Tensor with_slice(const at::Tensor& bucket, const Range& slice, const at::Tensor& values) {
  if (is_all_of(bucket, slice)) return values;
  at::Tensor copy = bucket.clone();
  part_of(copy, slice).copy_(values);
  return copy;
}

}  // namespace decent
