#include "decent/comm/device_choice.h"

#include <algorithm>
#include <cstdlib>
#include <map>

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

void refuse_parts_of_gpus() {
  throw UserError(
      "NCCL needs a whole GPU for each worker, and some workers have parts of one GPU (MIG):\n"
      "choose backend gloo, or give each worker a value of its own of the variable " +
      std::string(kHostId));
}

// Whether workers would have to share GPUs.
bool are_too_few(int gpus, const Launch& launch) {
  return gpus < launch.local_world_size && !(launch.own_gpus && gpus > 0);
}

// A GPU, because one was requested or because there is one for every worker.
DeviceChoice choose_gpu(BackendRequest backend, int gpus, const Launch& launch,
                        const Machine& machine) {
  const bool shared = are_too_few(gpus, launch);
  const bool must_differ = !machine.gpus_may_be_shared;
  const bool parts = launch.parts_of_gpus && must_differ;
  const bool by_gloo =
      backend == BackendRequest::gloo || (backend == BackendRequest::automatic && parts);
  if (!by_gloo && shared && must_differ) refuse_shared_gpus(gpus, launch);
  if (!by_gloo && parts) refuse_parts_of_gpus();
  const int index = gpus < launch.local_world_size && !shared ? 0 : launch.local_rank % gpus;
  machine.use_gpu(index);
  return {.device = c10::Device(c10::kCUDA, static_cast<c10::DeviceIndex>(index)),
          .backend = by_gloo ? Backend::gloo : Backend::nccl,
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

void compare_gpus(const std::vector<std::vector<GpuId>>& seen, Launch& launch) {
  std::map<std::string, int> workers;  // that see a GPU, by its id
  for (const auto& gpus : seen) {
    for (const GpuId& gpu : gpus) ++workers[gpu.id];
  }
  launch.own_gpus = launch.parts_of_gpus = false;
  std::map<std::string, std::size_t> owners;  // of a card or of parts of it: the first rank
  for (std::size_t rank = 0; rank < seen.size(); ++rank) {
    const bool own = std::all_of(seen[rank].begin(), seen[rank].end(),
                                 [&](const GpuId& gpu) { return workers[gpu.id] == 1; });
    if (!own || seen[rank].empty()) continue;
    if (static_cast<int>(rank) == launch.rank) launch.own_gpus = true;
    for (const GpuId& gpu : seen[rank]) {
      if (owners.emplace(gpu.card, rank).first->second != rank) launch.parts_of_gpus = true;
    }
  }
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
