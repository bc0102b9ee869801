#pragma once
// What kernels need from LibTorch, behind an interface that keeps LibTorch's headers away from
// nvcc.

#include <cuda_runtime_api.h>

#include <cstddef>

namespace decent::cuda {

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
