// Runs the kernels of room cuda without a GPU: every thread of every block in turn.

#include <span>
#include <vector>

#include "decent/codec/modulo_kernels.h"
#include "decent/cuda/exports.h"
#include "decent/cuda/launch_table.h"
#include "decent/cuda/modulo_table.h"
#include "decent/cuda/norm_table.h"
#include "decent/optim/bucket_kernels.h"
#include "device.h"

namespace decent::fake_gpu {
namespace {

using namespace decent::cuda;

template <typename Work>
void for_each_thread(unsigned blocks, unsigned threads, const Work& work) {
  check_device();
  for (unsigned block = 0; block < blocks; ++block)
    for (unsigned thread = 0; thread < threads; ++thread) work(block, thread);
}

struct Buckets {
  template <class Rule, typename T>
  static void update(const BucketStep& step,
                     std::span<const rules::Coefficients<Rule, T>> coefficients) {
    if (step.mixing.in_place) step.mixing.in_place(0, step.numel);
    for_each_launch<Rule, T>(step, coefficients, [](const cuda::Launch<Rule, T>& launch) {
      for_each_thread(launch.first_block[launch.count], kThreads,
                      [&](unsigned block, unsigned thread) { run_thread(launch, block, thread); });
    });
    if (step.written) step.written(0, step.numel);
  }

  static void in_pieces(std::int64_t numel, const PieceWork& work) { work(0, numel); }

  template <typename T>
  static void mix(T* x, const T* received, T self, T other, std::int64_t numel) {
    const Part<T, 0> part{x, received, nullptr, {}, numel};
    for_each_thread(1, kThreads, [&](unsigned, unsigned thread) {
      sweep<Mix>(part, thread, rules::Scales<T>{self, other, T(1)}, NoCoefficients());
    });
  }

  template <typename T>
  static std::int64_t partial_sums(std::span<const BucketSlice> slices) {
    return norm_blocks<T>(slices);
  }

  // In the order in which square_blocks (cuda/bucket_kernels.cu) adds up.
  template <typename T>
  static void add_up_squares(std::span<const BucketSlice> slices, double* sums) {
    check_device();
    for_each_norm_launch<T>(slices, sums, [](const NormLaunch<T>& launch) {
      for (unsigned block = 0; block < launch.first_block[launch.count]; ++block) {
        std::vector<double> parts(kThreads);
        for (unsigned t = 0; t < kThreads; ++t) parts[t] = thread_squares(launch, block, t);
        for (unsigned half = kThreads / 2; half > 0; half /= 2)
          for (unsigned t = 0; t < half; ++t) parts[t] += parts[t + half];
        launch.sums[block] = parts[0];
      }
    });
  }

  static void clip(const Clipping& clipping) {
    check_device();
    clipping.run();
  }
};

struct Codes {
  template <typename T>
  static void encode(const ModuloEncoding<T>& encoding, Range) {
    for_each_code_launch(encoding, [](const CodeLaunch<T>& launch) {
      for_each_thread(
          launch.first_block[launch.count], kCodeThreads,
          [&](unsigned block, unsigned thread) { encode_thread(launch, block, thread); });
    });
  }

  template <typename T>
  static void mix(const ModuloMixing<T>& mixing, Range) {
    for_each_code_launch(mixing, [](const CodeLaunch<T>& launch) {
      for_each_thread(launch.first_block[launch.count], kCodeThreads,
                      [&](unsigned block, unsigned thread) {
                        const int counted = mix_thread(launch, block, thread);
                        if (launch.wrapped != nullptr) *launch.wrapped += counted;
                      });
    });
  }
};

}  // namespace
}  // namespace decent::fake_gpu

extern "C" {

DECENT_CUDA_EXPORT const decent::BucketKernels* decent_cuda_bucket_kernels() {
  static const auto kernels = decent::BucketKernels::made_of<decent::fake_gpu::Buckets>();
  return &kernels;
}

DECENT_CUDA_EXPORT const decent::ModuloKernels* decent_cuda_modulo_kernels() {
  static const auto kernels = decent::ModuloKernels::made_of<decent::fake_gpu::Codes>();
  return &kernels;
}

}  // extern "C"
