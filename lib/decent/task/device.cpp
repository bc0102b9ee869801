#include "decent/task/device.h"

#include <ATen/Parallel.h>

#include <cstdlib>

#include "decent/comm/cuda.h"
#include "decent/config/choices.h"
#include "decent/core/error.h"
#include "decent/core/gpu_errors.h"
#include "decent/core/host.h"
#include "decent/model/reason.h"

namespace decent {
namespace {

DeviceRequest request_of(DeviceName name) {
  switch (name) {
    case DeviceName::automatic:
      return DeviceRequest::automatic;
    case DeviceName::cpu:
      return DeviceRequest::cpu;
    case DeviceName::cuda:
      return DeviceRequest::cuda;
  }
  __builtin_unreachable();
}

BackendRequest request_of(BackendName name) {
  switch (name) {
    case BackendName::automatic:
      return BackendRequest::automatic;
    case BackendName::gloo:
      return BackendRequest::gloo;
    case BackendName::nccl:
      return BackendRequest::nccl;
  }
  __builtin_unreachable();
}

// The keys that an error about the choice names: those that request something definite.
std::string wishes(const Recipe& recipe) {
  const bool backend = recipe.parallel.backend == BackendName::nccl;
  const bool device = recipe.model.device != DeviceName::automatic || !backend;
  std::string text;
  if (device) text = "model.device: " + std::string(name_of(recipe.model.device));
  if (backend) text += (device ? ", " : "") + std::string("parallel.backend: nccl");
  return text;
}

}  // namespace

DeviceChoice device_for(const Recipe& recipe, const Launch& launch, Purpose purpose,
                        const DeviceChooser& choose) {
  if (purpose == Purpose::model) return {};
  try {
    return choose(request_of(recipe.model.device), request_of(recipe.parallel.backend), launch);
  } catch (const UserError& error) {
    throw UserError(wishes(recipe) + ": " + error.what());
  }
}

DeviceChoice device_for(const Recipe& recipe, const Launch& launch, Purpose purpose) {
  return device_for(recipe, launch, purpose, choose_device);
}

std::string device_text(const DeviceChoice& choice, int workers) {
  std::string text = "cpu";
  if (choice.device.is_cuda()) text = "cuda (" + cuda_device_name(choice.device.index()) + ")";
  if (workers > 1) text += ", exchange by " + std::string(carrier_name(choice));
  return text;
}

void limit_threads() {
  const int usable = usable_processors();
  if (std::getenv("OMP_NUM_THREADS") == nullptr && usable < at::get_num_threads())
    at::set_num_threads(usable);
}

std::optional<double> take_peak_mb(at::Device device) {
  const auto memory = gpu_memory(device, /*restart=*/true);
  return memory ? std::optional(memory->used / (1 << 20)) : std::nullopt;
}

HostMemory host_memory_for(at::Device device) {
  return device.is_cuda() ? HostMemory::pinned : HostMemory::pageable;
}

std::function<void()> thread_start_for(at::Device device) {
  if (device.is_cpu()) return nullptr;
  return [index = device.index()] { use_cuda_device(index); };
}

std::optional<Outcome> device_trouble(const std::exception& error) {
  const std::string reason = reason_of(error);
  const auto known = gpu_error_of(reason);
  if (!known) return std::nullopt;
  return Outcome{known->code, reason + known->advice};
}

}  // namespace decent
