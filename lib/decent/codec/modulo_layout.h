#pragma once
// Where the codes of a bucket's slice are in a message, and how wide they are.

#include <cstdint>
#include <span>
#include <vector>

#include "decent/codec/modulo_grid.h"
#include "decent/codec/slices.h"

namespace decent {

/// The bytes in which `codes` codes are packed.
constexpr std::int64_t bytes_of_codes(std::int64_t codes, int bits) {
  return (codes * bits + 7) / 8;
}

/// Consecutive elements of a bucket whose codes have one width and one grid. `begin` is a multiple
/// of 16, so that codes of different segments never share a byte.
struct CodeSegment {
  std::int64_t begin = 0;  // element of the bucket
  std::int64_t end = 0;
  std::int64_t byte = 0;  // of the message, where the codes begin: the first in the low bits
  int bits = 8;
  int exponent = 0;  // s' = 2^exponent
};

/// The grid of the elements from `offset` on, up to the next GridFrom.
struct GridFrom {
  std::int64_t offset = 0;  // a multiple of 16
  int exponent = 0;
};

/// A message: the segments in the order of elements, and its length.
struct ModuloLayout {
  std::vector<CodeSegment> segments;
  std::int64_t bytes = 0;
  std::int64_t fine_elements = 0;  // those with 8 bits
};

/// The message for `slice` of a bucket: part number `fine_part` of the slice's format.parts parts
/// in 8 bits, then the rest in format.bits. `grids` are in ascending order, the first at 0.
ModuloLayout modulo_layout(const ModuloFormat& format, const Range& slice, std::int64_t fine_part,
                           std::span<const GridFrom> grids);

}  // namespace decent
