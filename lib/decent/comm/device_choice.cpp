#include "decent/comm/device_choice.h"

#include <cstdlib>

#include "decent/comm/cuda.h"
#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

constexpr const char* kHostId = "NCCL_HOSTID";

// "there is 1 GPU for 4 workers on this machine".
std::string gpus_for_workers(int gpus, const Launch& launch) {
  return std::string("there ") + (gpus == 1 ? "is " : "are ") + counted(gpus, "GPU") + " for " +
         counted(launch.local_world_size, "worker") + " on this machine";
}

void refuse_nccl_on_the_cpu(DeviceRequest device, BackendRequest backend) {
  if (device != DeviceRequest::cpu || backend != BackendRequest::nccl) return;
  throw UserError(
      "backend nccl carries tensors between GPUs, but the device is cpu: choose device cuda or "
      "backend gloo (or auto for either)");
}

void refuse_missing_gpus(DeviceRequest device, const std::string& problem) {
  const std::string request = device == DeviceRequest::cuda ? "device cuda" : "backend nccl";
  throw UserError(request + " needs a GPU: " + problem +
                  ".\nTo train on the CPU choose device cpu" +
                  (device == DeviceRequest::cuda ? "" : " and backend gloo") + " (or auto).");
}

void refuse_shared_gpus(int gpus, const Launch& launch) {
  throw UserError("NCCL needs a GPU for each worker, and " + gpus_for_workers(gpus, launch) +
                  ":\nstart fewer workers on it, choose backend gloo, or let them share GPUs by "
                  "giving each a value of its own of the variable " +
                  kHostId);
}

// Whether workers would have to share GPUs.
bool are_too_few(int gpus, const Launch& launch) {
  return gpus < launch.local_world_size && !(launch.own_gpus && gpus > 0);
}

// A GPU that was requested, or that every worker can have one of.
DeviceChoice choose_gpu(BackendRequest backend, int gpus, const Launch& launch,
                        const Machine& machine) {
  const bool shared = are_too_few(gpus, launch);
  const Backend chosen = backend == BackendRequest::gloo ? Backend::gloo : Backend::nccl;
  if (shared && chosen == Backend::nccl && !machine.gpus_may_be_shared)
    refuse_shared_gpus(gpus, launch);
  const int index = gpus < launch.local_world_size && !shared ? 0 : launch.local_rank % gpus;
  machine.use_gpu(index);
  return {.device = c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index)),
          .backend = chosen,
          .by_network = backend == BackendRequest::automatic};
}

// Why an automatic device is the CPU, if that may be a surprise.
std::string note_on_cpu(const CudaDevices& found, const Launch& launch) {
  if (found.count > 0) return "training on the CPU, as " + gpus_for_workers(found.count, launch);
  if (found.unexpected) return "training on the CPU, as no GPU can be used: " + found.problem;
  return {};
}

}  // namespace

DeviceChoice choose_device_of(const Machine& machine, DeviceRequest device, BackendRequest backend,
                              const Launch& launch) {
  refuse_nccl_on_the_cpu(device, backend);
  const DeviceChoice cpu{.may_share_memory = backend == BackendRequest::automatic};
  if (device == DeviceRequest::cpu) return cpu;
  const bool gpu_requested = device == DeviceRequest::cuda || backend == BackendRequest::nccl;
  const CudaDevices found = machine.find_gpus();
  if (gpu_requested && found.count == 0) refuse_missing_gpus(device, found.problem);
  if (!gpu_requested && are_too_few(found.count, launch)) {
    DeviceChoice choice = cpu;
    choice.note = note_on_cpu(found, launch);
    return choice;
  }
  return choose_gpu(backend, found.count, launch, machine);
}

DeviceChoice choose_device(DeviceRequest device, BackendRequest backend, const Launch& launch) {
  const char* host_id = std::getenv(kHostId);
  return choose_device_of({.find_gpus = find_cuda_devices,
                           .use_gpu = use_cuda_device,
                           .gpus_may_be_shared = host_id != nullptr && *host_id != '\0'},
                          device, backend, launch);
}

std::string_view backend_name(Backend backend) {
  switch (backend) {
    case Backend::gloo:
      return "gloo";
    case Backend::nccl:
      return "nccl";
    case Backend::nccl_within_machines:
      return "nccl and gloo";
  }
  __builtin_unreachable();
}

std::string_view carrier_name(const DeviceChoice& choice) {
  switch (choice.sharing) {
    case Sharing::none:
      return backend_name(choice.backend);
    case Sharing::within_machines:
      return "shared memory and gloo";
    case Sharing::all:
      return "shared memory";
  }
  __builtin_unreachable();
}

}  // namespace decent
