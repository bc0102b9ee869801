// Codes of buckets in a GPU's memory.

#include <cuda_runtime.h>

#include "decent/codec/modulo_kernels.h"
#include "decent/cuda/exports.h"
#include "decent/cuda/modulo_table.h"
#include "decent/cuda/stream.h"

namespace decent::cuda {
namespace {

template <typename T>
__global__ void __launch_bounds__(kCodeThreads)
    encode_blocks(const __grid_constant__ CodeLaunch<T> launch) {
  encode_thread(launch, blockIdx.x, threadIdx.x);
}

template <typename T>
__global__ void __launch_bounds__(kCodeThreads)
    mix_blocks(const __grid_constant__ CodeLaunch<T> launch) {
  const int counted = mix_thread(launch, blockIdx.x, threadIdx.x);
  // Most blocks have nothing to count.
  if (counted > 0 && launch.wrapped != nullptr)
    atomicAdd(reinterpret_cast<unsigned long long*>(launch.wrapped),
              static_cast<unsigned long long>(counted));
}

struct Cuda {
  template <typename T>
  static void encode(const ModuloEncoding<T>& encoding, Range) {
    for_each_code_launch(encoding, [](const CodeLaunch<T>& launch) {
      encode_blocks<<<launch.first_block[launch.count], kCodeThreads, 0, current_stream()>>>(
          launch);
      check(cudaGetLastError(), "encoding could not be started");
    });
  }

  template <typename T>
  static void mix(const ModuloMixing<T>& mixing, Range) {
    for_each_code_launch(mixing, [](const CodeLaunch<T>& launch) {
      mix_blocks<<<launch.first_block[launch.count], kCodeThreads, 0, current_stream()>>>(launch);
      check(cudaGetLastError(), "mixing with codes could not be started");
    });
  }
};

}  // namespace
}  // namespace decent::cuda

extern "C" DECENT_CUDA_EXPORT const decent::ModuloKernels* decent_cuda_modulo_kernels() {
  static const auto kernels = decent::ModuloKernels::made_of<decent::cuda::Cuda>();
  return &kernels;
}
