#pragma once
// How much memory tensors take.

#include <cstdint>

#include "decent/parallel/named_tensors.h"

namespace decent {

/// Of their elements, in bytes.
inline std::int64_t bytes_of(const NamedTensors& tensors) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<std::int64_t>(tensor.nbytes());
  return bytes;
}

}  // namespace decent
