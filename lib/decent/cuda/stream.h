#pragma once
// What kernels need of LibTorch, whose headers nvcc had better not see.

#include <cuda_runtime_api.h>

#include <cstddef>

namespace decent::cuda {

/// The calling thread's current stream, as LibTorch has it.
cudaStream_t current_stream();

/// Device memory from LibTorch's allocator, for work on the current stream; released while that
/// work may still be waiting, it goes to later work of that stream only.
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
