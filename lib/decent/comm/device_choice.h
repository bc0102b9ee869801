#pragma once
// On which device a worker trains, and what carries its tensors to the others.

#include <c10/core/Device.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "decent/comm/launch.h"

namespace decent {

/// What the user asks for.
enum class DeviceRequest { automatic, cpu, cuda };
enum class BackendRequest { automatic, gloo, nccl };

/// What carries tensors between workers.
enum class Backend { gloo, nccl, nccl_within_machines };

/// Which workers exchange through shared memory instead of gloo: none, those of the same machine,
/// or all, if there is only one machine.
enum class Sharing { none, within_machines, all };

struct DeviceChoice {
  c10::Device device{c10::kCPU};
  Backend backend = Backend::gloo;
  std::string note =
      {};  // why an automatic choice took the CPU although there is a GPU; else empty
  bool may_share_memory = false;  // with workers of the same machine
  // Whether NCCL is an automatic choice. World::communicator() changes that choice if the network
  // between machines is not one for GPUs (network.h).
  bool by_network = false;
  // World::communicator() finds these out.
  Sharing sharing = Sharing::none;
  std::string sharing_problem = {};  // why workers that may share memory cannot; else empty
};

/// Chooses the GPU whose number is this worker's local rank, or the CPU. Between GPUs it chooses
/// NCCL, else gloo, or shared memory if workers may share it and gloo is not requested. An
/// automatic device is a GPU if every worker of this machine can have one of its own, or if NCCL is
/// requested. A chosen GPU becomes the calling thread's current one, as by torch.cuda.set_device.
/// Call it before anything asks LibTorch for CUDA (core/cuda_library.h). Throws UserError if a
/// request cannot be met: there is no GPU; NCCL with the CPU; fewer GPUs than workers on this
/// machine, unless gloo carries the tensors or NCCL_HOSTID allows NCCL to share GPUs. Workers that
/// share GPUs get GPU local rank mod the number of GPUs. A worker that sees GPUs of its own
/// (Launch::own_gpus) gets the first of them, however few they are. NCCL takes two parts of a GPU
/// (Launch::parts_of_gpus) for one GPU, so gloo is then the automatic choice, and NCCL needs
/// NCCL_HOSTID.
DeviceChoice choose_device(DeviceRequest device, BackendRequest backend, const Launch& launch);

struct CudaDevices;  // comm/cuda.h
struct GpuId;

/// Sets own_gpus and parts_of_gpus of `launch`. `seen`: the GPUs that each worker sees, by rank.
void compare_gpus(const std::vector<std::vector<GpuId>>& seen, Launch& launch);

/// The calls to the machine that choose_device() makes.
struct Machine {
  std::function<CudaDevices()> find_gpus;
  std::function<void(int index)> use_gpu;
  bool gpus_may_be_shared = false;  // NCCL_HOSTID is set
};
/// choose_device() on a given machine, for tests.
DeviceChoice choose_device_of(const Machine& machine, DeviceRequest device, BackendRequest backend,
                              const Launch& launch);

/// "gloo", "nccl", or "nccl and gloo" where NCCL carries tensors within machines.
std::string_view backend_name(Backend backend);

/// What carries tensors between workers: "shared memory", "shared memory and gloo", or
/// backend_name().
std::string_view carrier_name(const DeviceChoice& choice);

}  // namespace decent
