#pragma once

namespace decent {

/// In bytes: the most that tensors of this process took of a GPU, the most that LibTorch held for
/// them, and how much the GPU has.
struct GpuMemory {
  double used = 0;
  double reserved = 0;
  double total = 0;
};

}  // namespace decent
