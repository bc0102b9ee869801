#pragma once
// Arrays as a data source, for safetensors and npz files.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decent/core/dtype.h"
#include "decent/data/source.h"

namespace decent {

/// An array in row-major order.
struct Array {
  std::string name;
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;
  /// Fills `out` with the array's bytes from `offset` on. Safe to call from any thread. May throw
  /// UserError.
  std::function<void(std::size_t offset, std::span<std::byte> out)> read;
};

/// Every array is a field, and its first dimension counts the samples. Throws UserError naming
/// `file` if there are no arrays or no samples, or if an array has no dimension or another number
/// of samples than the others.
std::unique_ptr<Source> make_table_source(std::vector<Array> arrays, const std::string& file);

}  // namespace decent
