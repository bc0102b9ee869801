#pragma once
// What the launching of kernels needs: errors of CUDA calls as exceptions, and LibTorch's streams
// and memory, behind an interface that keeps LibTorch's headers away from nvcc.

#include <cuda_runtime_api.h>

#include <cstddef>
#include <stdexcept>
#include <string>

namespace decent::cuda {

/// Throws std::runtime_error, which names `what`, unless the call succeeded.
inline void check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  throw std::runtime_error(std::string("CUDA: ") + what + ": " + cudaGetErrorString(error));
}

/// LibTorch's current stream of the calling thread.
cudaStream_t current_stream();

/// Device memory from LibTorch's allocator, for work on the current stream. It may be released
/// before that work has run: the allocator then reuses it only for later work of the same stream.
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  template <typename T>
  T* as() const {
    return static_cast<T*>(memory_);
  }

 private:
  void* memory_;
};

}  // namespace decent::cuda
