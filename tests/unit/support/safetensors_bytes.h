#pragma once
// Safetensors files written by hand, for tests.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace decent::testing {

inline std::string length_bytes(std::uint64_t length) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(length >> (8 * i) & 0xFF);
  return bytes;
}

/// A whole file: length, header, data.
inline std::string safetensors_bytes(std::string_view header, std::string_view data = "") {
  return length_bytes(header.size()) + std::string(header) + std::string(data);
}

inline std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace decent::testing
