#pragma once
// The size of tensors and of checkpoints of them.

#include <cstdint>

#include "decent/parallel/named_tensors.h"
#include "decent/parallel/tensor_names.h"

namespace decent {

/// The size of all elements, in bytes.
inline std::int64_t bytes_of(const NamedTensors& tensors) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

/// The size of the checkpoint files that `workers` workers write to a shared folder, each with a
/// state like this one, in bytes. `copies_alike`: see ParallelMethod.
inline std::int64_t checkpoint_bytes(const NamedTensors& state, std::int64_t workers,
                                     bool copies_alike) {
  const std::int64_t of_another = bytes_of(copies_alike ? parts_of(state).own : state);
  return bytes_of(state) + of_another * (workers - 1);
}

}  // namespace decent
