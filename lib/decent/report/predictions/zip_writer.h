#pragma once
// Zip archives of stored entries, with 64-bit sizes throughout. No torch.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/file.h"

namespace decent {

class ZipWriter {
 public:
  /// Writes to `file`, which must outlive this object.
  explicit ZipWriter(AtomicFile& file) : file_(file) {}

  /// Writes an entry that holds these pieces one after another.
  void add(std::string_view name, std::span<const std::span<const std::byte>> pieces);
  /// Writes the archive's directory, after the last entry.
  void finish();

 private:
  struct Entry {
    std::string name;
    std::uint64_t size = 0;
    std::uint32_t checksum = 0;
    std::uint64_t offset = 0;  // of the entry's header
  };
  void write(std::string_view bytes);

  AtomicFile& file_;
  std::uint64_t offset_ = 0;
  std::vector<Entry> entries_;
};

}  // namespace decent
