#pragma once
// The device of a run: which one it is, and how it is told.

#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "decent/comm/device_choice.h"
#include "decent/comm/launch.h"
#include "decent/comm/outcome.h"
#include "decent/config/recipe.h"
#include "decent/data/batch.h"
#include "decent/task/purpose.h"

namespace decent {

/// What model.device and parallel.backend come to on this worker. The CPU, whatever they say, where
/// a model is only read and written. Throws UserError, naming the key, where they cannot be met.
DeviceChoice device_for(const Recipe& recipe, const Launch& launch, Purpose purpose);

/// The same by another function in the place of choose_device(), for tests.
using DeviceChooser = std::function<DeviceChoice(DeviceRequest, BackendRequest, const Launch&)>;
DeviceChoice device_for(const Recipe& recipe, const Launch& launch, Purpose purpose,
                        const DeviceChooser& choose);

/// For the user: "cpu", "cuda (NVIDIA H100 80GB HBM3), exchange by nccl"; one worker exchanges
/// nothing.
std::string device_text(const DeviceChoice& choice, int workers);

/// Keeps LibTorch, which has a thread for every processor that the scheduler may use, to the time
/// that a control group allows them. OMP_NUM_THREADS wins.
void limit_threads();

/// The most MiB that tensors took of a GPU since the last call, or the start; nothing on the CPU.
std::optional<double> take_peak_mb(at::Device device);

/// The memory of the host that batches for `device` are read into.
HostMemory host_memory_for(at::Device device);

/// What a thread that reads batches for `device` does first (Prefetcher): it chooses the GPU, since
/// to allocate pinned memory is to use one. Null for the CPU.
std::function<void()> thread_start_for(at::Device device);

/// What the user is told of an error of a GPU (core/gpu_errors.h); nothing where it is none.
std::optional<Outcome> device_trouble(const std::exception& error);

}  // namespace decent
