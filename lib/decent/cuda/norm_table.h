#pragma once
// The sum of the squares of gradients as launches of blocks, and the part that one thread adds up;
// see launch_table.h.

#include <cstdint>
#include <span>

#include "decent/cuda/launch_table.h"

namespace decent::cuda {

// Larger than an update's blocks, because one thread adds up the sums of all blocks.
template <typename T>
inline constexpr std::int64_t kNormBlock = (16 << 10) / static_cast<std::int64_t>(sizeof(T));

template <typename T>
struct NormSlice {
  const T* grad;
  std::int64_t numel;
};

template <typename T>
struct NormLaunch {
  static constexpr int kMaxSlices = 200;

  double* sums;  // of this launch's blocks, one each
  int count;
  unsigned first_block[kMaxSlices + 1];
  NormSlice<T> slices[kMaxSlices];
};

template <typename T>
std::int64_t blocks_of(const BucketSlice& slice) {
  return slice.grad == nullptr ? 0 : (slice.numel + kNormBlock<T> - 1) / kNormBlock<T>;
}

/// The number of blocks in all launches together; each has a sum of its own.
template <typename T>
std::int64_t norm_blocks(std::span<const BucketSlice> slices) {
  std::int64_t blocks = 0;
  for (const BucketSlice& slice : slices) blocks += blocks_of<T>(slice);
  return blocks;
}

/// `sums` are norm_blocks(slices) numbers on the device.
template <typename T, typename Submit>
void for_each_norm_launch(std::span<const BucketSlice> slices, double* sums, const Submit& submit) {
  NormLaunch<T> launch{};
  launch.sums = sums;
  static_assert(sizeof(launch) <= 4096 - 16);
  const auto flush = [&] {
    if (launch.count == 0) return;
    submit(launch);
    launch.sums += launch.first_block[launch.count];
    launch.count = 0;
  };
  for (const BucketSlice& slice : slices) {
    const std::int64_t blocks = blocks_of<T>(slice);
    if (blocks == 0) continue;
    launch.slices[launch.count] = {static_cast<const T*>(slice.grad), slice.numel};
    launch.first_block[launch.count + 1] =
        launch.first_block[launch.count] + static_cast<unsigned>(blocks);
    if (++launch.count == launch.kMaxSlices) flush();
  }
  flush();
}

/// The part of thread number `thread` of block number `block`.
template <typename T>
DECENT_ELEMENT double thread_squares(const NormLaunch<T>& launch, unsigned block, unsigned thread) {
  const int s = slice_of(launch.first_block, launch.count, block);
  const std::int64_t begin = kNormBlock<T> * (block - launch.first_block[s]);
  const std::int64_t left = launch.slices[s].numel - begin;
  const std::int64_t count = left < kNormBlock<T> ? left : kNormBlock<T>;
  const T* grad = launch.slices[s].grad + begin;
  double sum = 0;
  for (std::int64_t k = thread; k < count; k += kThreads) {
    const auto value = static_cast<double>(grad[k]);
    sum += value * value;
  }
  return sum;
}

}  // namespace decent::cuda
