// Finding GPUs and choosing one.

#include <ATen/cuda/CUDAContextLight.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <string>

#include "decent/comm/cuda_functions.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/cuda/exports.h"

namespace {

using decent::UserError;

std::string version_text(int version) {  // 13000 -> "13.0"
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string old_driver() {
  int driver = 0;
  int runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  return "the NVIDIA driver is for CUDA " + version_text(driver) +
         " at most, LibTorch needs CUDA " + version_text(runtime) + ": update the driver";
}

std::string no_device() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return "the NVIDIA driver finds no GPU";
  return "the NVIDIA driver finds no GPU of those that CUDA_VISIBLE_DEVICES='" +
         std::string(visible) + "' allows";
}

int count_devices(cudaError_t& status) {
  int count = 0;
  status = c10::cuda::GetDeviceCount(&count);
  if (status != cudaSuccess) cudaGetLastError();  // clears the error, which CUDA would keep
  return status == cudaSuccess ? count : 0;
}

void check_index(int index) {
  cudaError_t status = cudaSuccess;
  const int count = count_devices(status);
  if (index >= 0 && index < count) return;
  throw UserError("there is no GPU " + std::to_string(index) + ": this process may use " +
                  std::to_string(count) + ", which are counted from 0");
}

}  // namespace

extern "C" {

DECENT_CUDA_EXPORT int decent_cuda_device_count(std::string* problem) {
  cudaError_t status = cudaSuccess;
  const int count = count_devices(status);
  if (count > 0) return count;
  if (status == cudaErrorInsufficientDriver) {
    *problem = old_driver();
  } else if (status == cudaSuccess || status == cudaErrorNoDevice) {
    *problem = no_device();
  } else {
    *problem = std::string("the NVIDIA driver reports: ") + cudaGetErrorString(status);
  }
  return 0;
}

DECENT_CUDA_EXPORT void decent_cuda_device_name(int index, std::string* name) {
  check_index(index);
  *name = at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(index))->name;
}

DECENT_CUDA_EXPORT void decent_cuda_device_id(int index, std::string* id, std::string* card) {
  check_index(index);
  const auto* properties = at::cuda::getDeviceProperties(static_cast<c10::DeviceIndex>(index));
  const auto* const bytes = reinterpret_cast<const unsigned char*>(properties->uuid.bytes);
  *id = decent::hex_text({bytes, sizeof properties->uuid.bytes});
  *card = std::to_string(properties->pciDomainID) + ":" + std::to_string(properties->pciBusID) +
          ":" + std::to_string(properties->pciDeviceID);
}

DECENT_CUDA_EXPORT void decent_cuda_memory(int index, bool restart, decent::GpuMemory* memory) {
  namespace allocator = c10::cuda::CUDACachingAllocator;
  constexpr auto kAll = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  check_index(index);
  const auto device = static_cast<c10::DeviceIndex>(index);
  const c10::CachingDeviceAllocator::DeviceStats stats = allocator::getDeviceStats(device);
  *memory = {.used = static_cast<double>(stats.allocated_bytes[kAll].peak),
             .reserved = static_cast<double>(stats.reserved_bytes[kAll].peak),
             .total = static_cast<double>(at::cuda::getDeviceProperties(device)->totalGlobalMem)};
  if (restart) allocator::resetPeakStats(device);
}

DECENT_CUDA_EXPORT void decent_cuda_use_device(int index) {
  check_index(index);
  if (!at::detail::getCUDAHooks().hasCUDART()) {
    throw UserError(
        "LibTorch was asked about CUDA before the library for GPUs was loaded, and stays with the "
        "answer that it has none:\nchoose the device (initialize_distributed, choose_device) "
        "before "
        "the first torch::manual_seed, backward or the like");
  }
  c10::cuda::set_device(static_cast<c10::DeviceIndex>(index));
}

}  // extern "C"
