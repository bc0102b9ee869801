#include "decent/parallel/exchange/slice_mixing.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include "decent/parallel/storage.h"

namespace decent {
namespace {

bool is_all_of(const at::Tensor& bucket, const Range& slice) {
  return slice == Range{0, bucket.numel()};
}

// Mixes `piece` of the bucket with those values of `part` that belong to it. The first value of
// `part` is for element `first`.
void mix_part(const at::Tensor& bucket, std::int64_t first, const at::Tensor& part,
              const Mixing& mixing, const Range& piece) {
  const Range both = overlap(piece, {first, first + part.numel()});
  if (both.empty()) return;
  const auto at = [&](const void* array, std::int64_t element) {
    return static_cast<const char*>(array) + element * bucket.element_size();
  };
  Mixing of_part = mixing;
  of_part.received = at(part.const_data_ptr(), both.begin - first);
  auto* const x = const_cast<char*>(at(bucket.mutable_data_ptr(), both.begin));
  mix(x, both.numel(), scalar_of(bucket), of_part, kernels_of(bucket));
}

}  // namespace

at::Tensor part_of(const at::Tensor& bucket, const Range& slice) {
  return bucket.narrow(0, slice.begin, slice.numel());
}

at::Tensor memory_for_slices(const at::Tensor& bucket, std::int64_t slices, at::ScalarType type) {
  return at::empty({longest_part(bucket.numel(), slices)}, bucket.options().dtype(type));
}

Mixing on_slice(const at::Tensor& bucket, const Range& slice, const Mixing& mixing,
                const std::vector<ReceivedPart>& received) {
  if (received.size() == 1 && is_all_of(bucket, slice)) {
    Mixing whole = mixing;
    whole.received = received.front().values.const_data_ptr();
    return whole;
  }
  return {.in_place = [=](std::int64_t begin, std::int64_t end) {
    for (const auto& [first, values] : received)
      mix_part(bucket, slice.begin + first, values, mixing, {begin, end});
  }};
}

at::Tensor whole_of(const std::vector<ReceivedPart>& parts) {
  if (parts.size() == 1) return parts.front().values;
  std::vector<at::Tensor> values;
  for (const ReceivedPart& part : parts) values.push_back(part.values);
  return at::cat(values);
}

at::Tensor with_slice(const at::Tensor& bucket, const Range& slice, const at::Tensor& values) {
  if (is_all_of(bucket, slice)) return values;
  at::Tensor copy = bucket.clone();
  part_of(copy, slice).copy_(values);
  return copy;
}

}  // namespace decent
