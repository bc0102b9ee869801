#pragma once
// Zip archives written by hand, for tests.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace decent::testing {

/// `number` as `bytes` bytes, little-endian.
inline std::string number_bytes(std::uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i, number >>= 8) text += static_cast<char>(number & 0xFF);
  return text;
}

/// An entry as it is in the archive: `content` is already compressed if the method says so.
struct ZipPart {
  std::string name;
  std::string content;
  std::uint64_t size = 0;  // before compression; 0: that of content
  std::uint32_t checksum = 0;
  std::uint16_t method = 0;
  std::uint16_t flags = 0;
};

/// A whole archive. `is_long`: all sizes and offsets are in 64-bit fields.
inline std::string zip_bytes(const std::vector<ZipPart>& parts, bool is_long = false) {
  const auto field = [&](std::uint64_t number) {
    return is_long ? number_bytes(0xFFFFFFFF, 4) : number_bytes(number, 4);
  };
  std::string bytes, directory;
  for (const ZipPart& part : parts) {
    const std::uint64_t size = part.size == 0 ? part.content.size() : part.size;
    const std::string extra =
        !is_long ? ""
                 : number_bytes(1, 2) + number_bytes(24, 2) + number_bytes(size, 8) +
                       number_bytes(part.content.size(), 8) + number_bytes(bytes.size(), 8);
    const std::string kind = number_bytes(45, 2) + number_bytes(part.flags, 2) +
                             number_bytes(part.method, 2) + number_bytes(0, 4) +
                             number_bytes(part.checksum, 4);
    directory += "PK\x01\x02" + number_bytes(45, 2) + kind + field(part.content.size()) +
                 field(size) + number_bytes(part.name.size(), 2) + number_bytes(extra.size(), 2) +
                 number_bytes(0, 10) + field(bytes.size()) + part.name + extra;
    bytes += "PK\x03\x04" + kind + field(part.content.size()) + field(size) +
             number_bytes(part.name.size(), 2) + number_bytes(0, 2) + part.name + part.content;
  }
  const std::size_t begin = bytes.size(), end = begin + directory.size();
  bytes += directory;
  if (is_long) {
    bytes += "PK\x06\x06" + number_bytes(44, 8) + number_bytes(0, 12) +
             number_bytes(parts.size(), 8) + number_bytes(parts.size(), 8) +
             number_bytes(directory.size(), 8) + number_bytes(begin, 8);
    bytes += "PK\x06\x07" + number_bytes(0, 4) + number_bytes(end, 8) + number_bytes(1, 4);
  }
  const std::uint64_t count = is_long ? 0xFFFF : parts.size();
  return bytes + "PK\x05\x06" + number_bytes(0, 4) + number_bytes(count, 2) +
         number_bytes(count, 2) + field(directory.size()) + field(begin) + number_bytes(0, 2);
}

}  // namespace decent::testing
