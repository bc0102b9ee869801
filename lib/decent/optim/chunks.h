#pragma once
// How an update runs over a bucket, internal to this room: pieces of parameters, spread over
// threads. What a piece gives does not depend on who takes it, so neither does the result.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "decent/optim/bucket_update.h"
#include "decent/optim/kernels.h"

namespace decent {

// Elements a thread takes at a time: long enough to amortise the call, short enough to balance.
inline constexpr std::int64_t kChunk = 1 << 15;

struct Chunk {
  std::size_t slice;
  std::int64_t begin;
  std::int64_t count;
};

inline std::vector<Chunk> split_into_chunks(std::span<const BucketSlice> slices) {
  std::vector<Chunk> chunks;
  for (std::size_t s = 0; s < slices.size(); ++s) {
    for (std::int64_t begin = 0; begin < slices[s].numel; begin += kChunk) {
      chunks.push_back({s, begin, std::min(kChunk, slices[s].numel - begin)});
    }
  }
  return chunks;
}

// The arrays of one slice from one element on, typed.
template <typename T>
struct Arrays {
  Arrays(const BucketStep& step, const BucketSlice& slice, std::int64_t begin)
      : step_(step),
        at_(slice.offset + begin),
        x(static_cast<T*>(step.x) + at_),
        received(step.mixing.received ? static_cast<const T*>(step.mixing.received) + at_
                                      : nullptr),
        grad(slice.grad ? static_cast<const T*>(slice.grad) + begin : nullptr) {}

  T* state(std::size_t number) const { return static_cast<T*>(step_.states[number]) + at_; }

 private:
  const BucketStep& step_;
  std::int64_t at_;

 public:
  T* x;
  const T* received;
  const T* grad;
};

// Runs `update(arrays, slice, count)` over every slice that has a gradient; the others are mixed
// only.
template <typename T, typename Update>
void for_each_chunk(const BucketStep& step, const Update& update) {
  const std::vector<Chunk> chunks = split_into_chunks(step.slices);
#pragma omp parallel for schedule(static) if (chunks.size() > 1)
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const BucketSlice& slice = step.slices[chunks[i].slice];
    const Arrays<T> arrays(step, slice, chunks[i].begin);
    if (arrays.grad != nullptr) {
      update(arrays, slice, chunks[i].count);
    } else if (arrays.received != nullptr) {
      kernels::mix(arrays.x, arrays.received, static_cast<T>(step.mixing.self),
                   static_cast<T>(step.mixing.other), chunks[i].count);
    }
  }
}

template <typename Derived>
class TypedUpdate : public BucketUpdate {
 public:
  void apply(const BucketStep& step) const override {
    const auto& self = static_cast<const Derived&>(*this);
    if (step.scalar == Scalar::float32) {
      self.template apply_as<float>(step);
    } else {
      self.template apply_as<double>(step);
    }
  }
};

}  // namespace decent
