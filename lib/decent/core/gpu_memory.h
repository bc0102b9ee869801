#pragma once

namespace decent {

/// In bytes: the peak size of this process's tensors on a GPU, the peak that LibTorch reserved for
/// them, and the GPU's total memory.
struct GpuMemory {
  double used = 0;
  double reserved = 0;
  double total = 0;
};

}  // namespace decent
