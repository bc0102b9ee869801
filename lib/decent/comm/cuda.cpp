#include "decent/comm/cuda.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>
#include <utility>

#include "decent/comm/cuda_functions.h"
#include "decent/comm/staging.h"
#include "decent/core/cuda_library.h"
#include "decent/core/error.h"
#include "decent/core/host.h"

namespace decent {
namespace {

// The driver's own library, which is small: without it the large one need not be loaded.
bool driver_is_there() { return ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr; }

// An empty list, or one that begins with no GPU.
bool hidden(std::string_view visible) { return visible.empty() || visible.substr(0, 2) == "-1"; }

}  // namespace

CudaDevices find_cuda_devices() {
  if (!driver_is_there())
    return {.problem = "this machine has no NVIDIA driver (libcuda.so.1 is not there)"};
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible != nullptr && hidden(visible))
    return {.problem =
                "CUDA_VISIBLE_DEVICES is '" + std::string(visible) + "', which hides all GPUs"};
  CudaDevices devices;
  try {
    devices.count = cuda_function<decltype(decent_cuda_device_count)>("decent_cuda_device_count")(
        &devices.problem);
  } catch (const UserError& error) {
    devices.problem = error.what();
  }
  devices.unexpected = devices.count == 0;
  return devices;
}

std::vector<GpuId> cuda_device_ids() {
  std::vector<GpuId> ids(static_cast<std::size_t>(find_cuda_devices().count));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    cuda_function<decltype(decent_cuda_device_id)>("decent_cuda_device_id")(
        static_cast<int>(i), &ids[i].id, &ids[i].card);
    ids[i].card = host_name() + " " + ids[i].card;  // places on the bus are unique within a machine
  }
  return ids;
}

std::string cuda_device_name(int index) {
  std::string name;
  cuda_function<decltype(decent_cuda_device_name)>("decent_cuda_device_name")(index, &name);
  return name;
}

std::optional<GpuMemory> gpu_memory(at::Device device, bool restart) {
  if (device.is_cpu()) return std::nullopt;
  GpuMemory memory;
  cuda_function<decltype(decent_cuda_memory)>("decent_cuda_memory")(device.index(), restart,
                                                                    &memory);
  return memory;
}

void use_cuda_device(int index) {
  cuda_function<decltype(decent_cuda_use_device)>("decent_cuda_use_device")(index);
}

std::shared_ptr<Communicator> connect_nccl(
    c10d::Store& store, std::shared_ptr<Communicator> host,
    const std::function<void(const std::string&)>& on_error) {
  std::shared_ptr<Communicator> result;
  cuda_function<decltype(decent_cuda_connect_nccl)>("decent_cuda_connect_nccl")(&store, &host,
                                                                                &on_error, &result);
  return result;
}

std::shared_ptr<Communicator> stage_cuda(std::shared_ptr<Communicator> host) {
  std::shared_ptr<StagingDevice> device;
  cuda_function<decltype(decent_cuda_staging_device)>("decent_cuda_staging_device")(&device);
  return stage(std::move(host), std::move(device));
}

}  // namespace decent
