#pragma once
// Files of MNIST's format written by hand, for tests.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace decent::testing {

/// The header for elements of that type and shape, and the data.
inline std::string idx_bytes(char type, const std::vector<std::uint32_t>& shape,
                             std::string_view data) {
  std::string bytes = {0, 0, type, static_cast<char>(shape.size())};
  for (const std::uint32_t extent : shape)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(extent >> shift & 0xFF);
  return bytes + std::string(data);
}

}  // namespace decent::testing
