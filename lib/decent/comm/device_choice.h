#pragma once
// On which device a worker trains, and what carries its tensors to the others.

#include <c10/core/Device.h>

#include <functional>
#include <string>
#include <string_view>

#include "decent/comm/launch.h"

namespace decent {

enum class DeviceWish { automatic, cpu, cuda };
enum class BackendWish { automatic, gloo, nccl };
enum class Backend { gloo, nccl };

struct DeviceChoice {
  c10::Device device{c10::kCPU};
  Backend backend = Backend::gloo;
  std::string note;  // what the user may want to know of an automatic choice; empty where nothing
};

/// The GPU of this worker's number on its machine, or the CPU; NCCL between GPUs, gloo otherwise.
/// An automatic device is a GPU where every worker of this machine has one of its own, or where
/// NCCL is wished. Makes a chosen GPU the calling thread's. Called before anything asks LibTorch
/// for CUDA (core/cuda_library.h). Throws UserError where a wish cannot be met: no GPU; NCCL on the
/// CPU; fewer GPUs than workers on this machine, unless gloo carries the tensors or NCCL_HOSTID
/// says that NCCL may share them, which puts worker r on GPU r mod their number.
DeviceChoice choose_device(DeviceWish device, BackendWish backend, const Launch& launch);

struct CudaDevices;  // comm/cuda.h

/// What a choice of device asks of the machine.
struct Machine {
  std::function<CudaDevices()> find_gpus;
  std::function<void(int index)> use_gpu;
  bool gpus_may_be_shared = false;  // NCCL_HOSTID is set
};
/// The same on a machine of one's own making, for tests.
DeviceChoice choose_device_of(const Machine& machine, DeviceWish device, BackendWish backend,
                              const Launch& launch);

/// "gloo" or "nccl".
std::string_view backend_name(Backend backend);

}  // namespace decent
