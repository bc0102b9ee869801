#pragma once
// Checksums against accidental damage by disks, transfers and programs, not against attackers.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace decent {

/// XXH3 with 128 bits (https://xxhash.com) of bytes that are added piece by piece.
class Checksum {
 public:
  Checksum();
  ~Checksum();
  Checksum(const Checksum&) = delete;
  Checksum& operator=(const Checksum&) = delete;

  void add(std::string_view bytes);

  /// The checksum of all bytes so far: 32 hexadecimal digits, as xxhash.xxh3_128_hexdigest in
  /// Python.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string checksum_of(std::string_view bytes);

}  // namespace decent
