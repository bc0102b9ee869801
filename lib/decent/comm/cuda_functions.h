#pragma once
// What libdecent_cuda.so exports for this room; comm/cuda.cpp calls it. Internal.

#include <functional>
#include <memory>
#include <string>

#include "decent/comm/communicator.h"
#include "decent/comm/staging.h"
#include "decent/core/gpu_memory.h"

namespace c10d {
class Store;
}

extern "C" {

/// The number of GPUs; if it is 0, `problem` says why.
int decent_cuda_device_count(std::string* problem);

/// The members of GpuId in comm/cuda.h; `card` is the place on the PCI bus.
void decent_cuda_device_id(int index, std::string* id, std::string* card);

/// See cuda_device_name(), gpu_memory(), use_cuda_device() in comm/cuda.h.
void decent_cuda_device_name(int index, std::string* name);
void decent_cuda_memory(int index, bool restart, decent::GpuMemory* memory);
void decent_cuda_use_device(int index);

/// See connect_nccl() in comm/cuda.h.
void decent_cuda_connect_nccl(c10d::Store* store, const std::shared_ptr<decent::Communicator>* host,
                              const std::function<void(const std::string&)>* on_error,
                              std::shared_ptr<decent::Communicator>* result);

/// The device that copies from and to the calling thread's GPU.
void decent_cuda_staging_device(std::shared_ptr<decent::StagingDevice>* result);

}  // extern "C"
