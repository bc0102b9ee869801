#pragma once
// A tensor as it lies in a file. No torch.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "decent/core/dtype.h"

namespace decent {

/// The most dimensions that a tensor in a file may have, which is the limit of PyTorch's iterators.
inline constexpr std::size_t kMaxTensorDimensions = 64;

/// `data` is the memory from the first element to the last, which `strides` (in elements, none
/// negative) may visit in any order, leave out or repeat. Not necessarily aligned.
struct StoredTensor {
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::span<const std::byte> data;
};

using StoredTensors = std::map<std::string, StoredTensor>;

}  // namespace decent
