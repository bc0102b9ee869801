#pragma once
// The functions that LibTorch needs from a device of type cuda, implemented with host memory.
//
// It is stricter than a GPU where a mistake would only show on a machine with several: only threads
// whose current device is the one that the process chose (decent_cuda_use_device) may allocate
// memory and pinned memory. On a GPU, other threads would create a context on GPU 0.

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <string>

namespace decent::fake_gpu {

/// The number of devices: as many as CUDA_VISIBLE_DEVICES lists, else DECENT_FAKE_GPUS, else 1.
int device_count();

/// The calling thread's device.
c10::Device current_device();

/// Makes `index` the device of this thread and the only one that the process may use.
void choose_device(int index);

/// The generator from which cuda operators draw random numbers.
const at::Generator& generator();

/// Device memory that is really the host's `memory`; it keeps that alive and counts its bytes.
/// Throws c10::OutOfMemoryError beyond DECENT_FAKE_GPU_MB.
c10::DataPtr device_memory(const c10::Storage& memory);

/// The bytes that may be occupied (DECENT_FAKE_GPU_MB); 0: any number.
std::int64_t memory_limit();
/// The peak number of bytes of tensors since the start, or since the last call with `restart`.
std::int64_t take_peak(bool restart);

/// Records that the host waits for the device, as a line in the file DECENT_FAKE_GPU_WAITS if that
/// is set.
void note_wait(const std::string& operation);

/// From now on every call of the device fails with this error, as after a failed assertion in a
/// kernel.
void break_device(const std::string& error);
/// Throws c10::AcceleratorError if the device is broken.
void check_device();

}  // namespace decent::fake_gpu
