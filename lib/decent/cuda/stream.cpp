#include "decent/cuda/stream.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>

namespace decent::cuda {

cudaStream_t current_stream() { return c10::cuda::getCurrentCUDAStream().stream(); }

DeviceMemory::DeviceMemory(std::size_t bytes)
    : memory_(c10::cuda::CUDACachingAllocator::raw_alloc_with_stream(bytes, current_stream())) {}

DeviceMemory::~DeviceMemory() { c10::cuda::CUDACachingAllocator::raw_delete(memory_); }

}  // namespace decent::cuda
