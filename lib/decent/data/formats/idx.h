#pragma once
// The IDX format of MNIST's files: a big-endian header that says the type of the elements and the
// shape, then the elements (Yann LeCun, "The MNIST database of handwritten digits"). Files come
// from users, so every field is distrusted. No torch.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace decent {

/// The types of integers that are read.
enum class IdxType : std::uint8_t { uint8 = 0x08, int8 = 0x09, int16 = 0x0b, int32 = 0x0c };

std::size_t size_of(IdxType type);

/// An array, row-major, of big-endian elements.
struct Idx {
  IdxType type = IdxType::uint8;
  std::vector<std::int64_t> shape;      // of 1 to 8 dimensions
  std::span<const std::byte> data;      // in `storage`, or in the bytes that were read
  std::vector<std::byte> storage = {};  // of a compressed file

  std::int64_t element(std::size_t index) const;
};

/// Reads a whole file, which may be compressed by gzip. Throws UserError naming `file` and the
/// offset for files of other formats, other types of elements, sizes that disagree with the header
/// and damaged compressed data. Memory is allocated only if the file is compressed, can hold that
/// much, and this machine has it.
Idx read_idx(std::span<const std::byte> bytes, const std::string& file);

}  // namespace decent
