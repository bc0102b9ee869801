// Updates and norms of buckets in a GPU's memory.

#include <cuda_runtime.h>

#include "decent/cuda/exports.h"
#include "decent/cuda/launch_table.h"
#include "decent/cuda/norm_table.h"
#include "decent/cuda/stream.h"
#include "decent/optim/bucket_kernels.h"

namespace decent::cuda {
namespace {

// The arguments stay in constant memory: blocks index their table.
template <class Rule, typename T>
__global__ void __launch_bounds__(kThreads)
    update_blocks(const __grid_constant__ Launch<Rule, T> launch) {
  run_thread(launch, blockIdx.x, threadIdx.x);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    mix_blocks(T* x, const T* received, T self, T other, std::int64_t numel) {
  const std::int64_t begin = kBlockElements<T> * blockIdx.x;
  const Part<T, 0> part{
      x + begin, received + begin, nullptr, {}, min(kBlockElements<T>, numel - begin)};
  sweep<Mix>(part, threadIdx.x, rules::Scales<T>{self, other, T(1)}, NoCoefficients());
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    square_blocks(const __grid_constant__ NormLaunch<T> launch) {
  __shared__ double shared[kThreads];
  shared[threadIdx.x] = thread_squares(launch, blockIdx.x, threadIdx.x);
  __syncthreads();
  for (unsigned half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) launch.sums[blockIdx.x] = shared[0];
}

// Runs in one thread, because a bucket has only some thousand sums, and their order decides the
// last bits.
__global__ void clip_block(const Clipping clipping) { clipping.run(); }

struct Cuda {
  template <class Rule, typename T>
  static void update(const BucketStep& step,
                     std::span<const rules::Coefficients<Rule, T>> coefficients) {
    // These are separate kernels, because a pass over a GPU's memory costs little.
    if (step.mixing.in_place) step.mixing.in_place(0, step.numel);
    for_each_launch<Rule, T>(step, coefficients, [](const Launch<Rule, T>& launch) {
      update_blocks<<<launch.first_block[launch.count], kThreads, 0, current_stream()>>>(launch);
      check(cudaGetLastError(), "an update could not be started");
    });
    if (step.written) step.written(0, step.numel);
  }

  static void in_pieces(std::int64_t numel, const PieceWork& work) { work(0, numel); }

  template <typename T>
  static void mix(T* x, const T* received, T self, T other, std::int64_t numel) {
    if (numel == 0) return;
    const auto blocks = static_cast<unsigned>((numel + kBlockElements<T> - 1) / kBlockElements<T>);
    mix_blocks<<<blocks, kThreads, 0, current_stream()>>>(x, received, self, other, numel);
    check(cudaGetLastError(), "mixing could not be started");
  }

  template <typename T>
  static std::int64_t partial_sums(std::span<const BucketSlice> slices) {
    return norm_blocks<T>(slices);
  }

  template <typename T>
  static void add_up_squares(std::span<const BucketSlice> slices, double* sums) {
    for_each_norm_launch<T>(slices, sums, [](const NormLaunch<T>& launch) {
      square_blocks<<<launch.first_block[launch.count], kThreads, 0, current_stream()>>>(launch);
      check(cudaGetLastError(), "a norm could not be started");
    });
  }

  static void clip(const Clipping& clipping) {
    clip_block<<<1, 1, 0, current_stream()>>>(clipping);
    check(cudaGetLastError(), "clipping could not be started");
  }
};

}  // namespace
}  // namespace decent::cuda

extern "C" DECENT_CUDA_EXPORT const decent::BucketKernels* decent_cuda_bucket_kernels() {
  static const auto kernels = decent::BucketKernels::made_of<decent::cuda::Cuda>();
  return &kernels;
}
