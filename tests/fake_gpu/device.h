#pragma once
// What LibTorch asks of a device of type cuda, answered with host memory.
//
// It is stricter than a GPU where a mistake would only show on a machine with several: memory and
// pinned memory may be asked for only by threads whose current device is the one that the process
// chose (decent_cuda_use_device). On a GPU, other threads make a context on GPU 0.

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <string>

namespace decent::fake_gpu {

/// How many there are: those that CUDA_VISIBLE_DEVICES lists, else DECENT_FAKE_GPUS, else 1.
int device_count();

/// The calling thread's device.
c10::Device current_device();

/// Makes `index` the device of this thread and the only one that the process may use.
void choose_device(int index);

/// The generator of random numbers that cuda operators draw from.
const at::Generator& generator();

/// Memory of the device that is the host's `memory`, which it keeps alive and counts. Throws
/// c10::OutOfMemoryError beyond DECENT_FAKE_GPU_MB.
c10::DataPtr device_memory(const c10::Storage& memory);

/// The bytes that may be occupied (DECENT_FAKE_GPU_MB); 0: any number.
std::int64_t memory_limit();
/// The most bytes that tensors occupied since the start, or since the last call with `restart`.
std::int64_t take_peak(bool restart);

/// Adds a line to the file DECENT_FAKE_GPU_WAITS, where there is one: the host waits for the
/// device.
void note_wait(const std::string& operation);

/// From now on every call of the device fails with this, as after an assertion of a kernel.
void break_device(const std::string& error);
/// Throws c10::AcceleratorError if the device is broken.
void check_device();

}  // namespace decent::fake_gpu
