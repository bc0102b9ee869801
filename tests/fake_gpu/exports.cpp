// The rest of what libdecent_cuda.so exports.

#include <cstdlib>
#include <sstream>
#include <string>

#include "decent/comm/cuda_functions.h"
#include "decent/core/error.h"
#include "decent/core/version.h"
#include "decent/cuda/exports.h"
#include "device.h"

using decent::UserError;
namespace fake_gpu = decent::fake_gpu;

namespace {

void check_index(int index) {
  if (index >= 0 && index < fake_gpu::device_count()) return;
  throw UserError("there is no GPU " + std::to_string(index));
}

}  // namespace

extern "C" {

DECENT_CUDA_EXPORT const char* decent_cuda_build_id() { return decent::build_id().data(); }

DECENT_CUDA_EXPORT int decent_cuda_device_count(std::string* problem) {
  const int count = fake_gpu::device_count();
  if (count == 0) *problem = "the fake driver finds no GPU";
  return count;
}

DECENT_CUDA_EXPORT void decent_cuda_device_name(int index, std::string* name) {
  check_index(index);
  *name = "host memory";
}

// A number in CUDA_VISIBLE_DEVICES is the GPU's own number; 3.0 and 3.1 are parts of GPU 3.
DECENT_CUDA_EXPORT void decent_cuda_device_id(int index, std::string* id, std::string* card) {
  check_index(index);
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  std::istringstream list(visible == nullptr ? "" : visible);
  *id = std::to_string(index);
  for (int i = 0; visible != nullptr && i <= index; ++i) std::getline(list, *id, ',');
  *card = id->substr(0, id->find('.'));
}

// Reserved memory equals used memory, on a GPU of 1 GiB unless another size is set.
DECENT_CUDA_EXPORT void decent_cuda_memory(int index, bool restart, decent::GpuMemory* memory) {
  check_index(index);
  const auto peak = static_cast<double>(fake_gpu::take_peak(restart));
  const auto limit = static_cast<double>(fake_gpu::memory_limit());
  *memory = {.used = peak, .reserved = peak, .total = limit > 0 ? limit : 1 << 30};
}

DECENT_CUDA_EXPORT void decent_cuda_use_device(int index) {
  check_index(index);
  fake_gpu::choose_device(index);
}

}  // extern "C"
