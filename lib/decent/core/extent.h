#pragma once
// The memory that a tensor reaches.

#include <cstddef>
#include <cstdint>
#include <span>

namespace decent {

struct Extent {
  const char* begin;
  const char* end;

  bool overlaps(const Extent& other) const { return begin < other.end && other.begin < end; }
};

/// The bytes from the first to the last element of a strided tensor that is not empty. `strides`
/// are in elements, `element_size` is in bytes.
inline Extent extent_of(const void* data, std::span<const std::int64_t> sizes,
                        std::span<const std::int64_t> strides, std::size_t element_size) {
  std::int64_t last = 0;
  for (std::size_t d = 0; d < sizes.size(); ++d) last += (sizes[d] - 1) * strides[d];
  const char* begin = static_cast<const char*>(data);
  return {begin, begin + (last + 1) * static_cast<std::int64_t>(element_size)};
}

}  // namespace decent
