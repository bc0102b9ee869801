#pragma once
// How much memory tensors take, and checkpoints of them.

#include <cstdint>

#include "decent/parallel/named_tensors.h"
#include "decent/parallel/tensor_names.h"

namespace decent {

/// Of their elements, in bytes.
inline std::int64_t bytes_of(const NamedTensors& tensors) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

/// Of the checkpoint files that `workers` write to a folder that they share, each with a state like
/// this one. `copies_alike`: see ParallelMethod.
inline std::int64_t checkpoint_bytes(const NamedTensors& state, std::int64_t workers,
                                     bool copies_alike) {
  const std::int64_t of_another = bytes_of(copies_alike ? parts_of(state).own : state);
  return bytes_of(state) + of_another * (workers - 1);
}

}  // namespace decent
