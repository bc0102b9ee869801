#pragma once
// The safetensors file format: an 8-byte little-endian header length, a JSON header, raw tensor
// data. Format: the README of the safetensors project. Files come from users, so every field is
// distrusted. Bytes in, plain structs out; no torch.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decent/core/dtype.h"

namespace decent {

/// One tensor of a file. `data` points into the bytes that were parsed (row-major, not necessarily
/// aligned).
struct TensorView {
  std::string name;
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> data;
};

/// Tensors in the order of their names, and the file's own "__metadata__".
struct Safetensors {
  std::vector<TensorView> tensors;
  std::map<std::string, std::string> metadata;

  /// nullptr if there is no tensor of that name.
  const TensorView* find(std::string_view name) const;
};

/// Parses a whole file. Throws UserError with a message that names `file` for: a header that is too
/// long or not of this form, unknown dtypes, negative or overflowing shapes, ranges that lie
/// outside the file, overlap, leave holes or disagree with dtype and shape, duplicate names.
Safetensors parse_safetensors(std::span<const std::byte> bytes, std::string_view file);

/// The 8-byte length and header of a file that holds `tensors` back to back in the given order,
/// padded with spaces so that the data starts at a multiple of 64 bytes. The caller writes the
/// header, then each tensor's data. Names (distinct, not "__metadata__") and metadata must be
/// UTF-8.
std::string safetensors_header(std::span<const TensorView> tensors,
                               const std::map<std::string, std::string>& metadata = {});

}  // namespace decent
