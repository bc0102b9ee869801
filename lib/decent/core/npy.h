#pragma once
// The .npy file format, numpy.lib.format versions 1.0 to 3.0. Files come from users, so every field
// is distrusted. Bytes in, plain structs out; no torch.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/dtype.h"

namespace decent {

/// What a .npy header says, and where the array's bytes begin.
struct NpyLayout {
  std::string descr;  // the type of the elements, as NumPy writes it: "<u2"
  std::vector<std::int64_t> shape;
  bool fortran_order = false;   // the first index moves fastest
  std::size_t data_offset = 0;  // bytes from the start of the file
};

/// The same for elements of a type that can be read.
struct NpyHeader : NpyLayout {
  DType dtype = DType::float32;
  std::size_t data_bytes = 0;  // product of the shape times the element size
};

/// Parses the header at the start of `bytes`, which may end after it. Throws UserError naming
/// `name` if it is not a valid header, and for records.
NpyLayout parse_npy_layout(std::span<const std::byte> bytes, std::string_view name);

/// The same. Throws UserError also for element types that cannot be read (big-endian, complex,
/// unsigned of more than 8 bits, text, objects).
NpyHeader parse_npy_header(std::span<const std::byte> bytes, std::string_view name);

/// The elements of an array in Fortran order, in C order.
std::vector<std::byte> to_c_order(std::span<const std::byte> data, const NpyHeader& header);

}  // namespace decent
