#pragma once
// Samples of a source as tensors.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "decent/core/dtype.h"
#include "decent/data/source.h"

namespace decent {

/// One tensor of shape [B, sample shape ..] per field, contiguous, on the CPU.
struct Batch {
  std::vector<at::Tensor> fields;

  /// Whether none of its samples could be read (data.on_error: skip).
  bool empty() const { return fields.empty(); }
  std::int64_t samples() const { return empty() ? 0 : fields.front().size(0); }
};

/// A GPU copies from pinned memory without the CPU. Pinned memory takes longer to allocate, and
/// needs a GPU.
enum class HostMemory { pageable, pinned };

/// An empty tensor [samples, shape ..] for one field of a batch.
at::Tensor empty_batch(DType dtype, std::int64_t samples, std::span<const std::int64_t> shape,
                       HostMemory memory);

/// Reads the B samples `indices`, each in [0, source.size()), of the fields with numbers `fields`
/// into new tensors, one per field in that order. Any thread. Throws what Source::read throws.
Batch read_batch(const Source& source, std::span<const std::size_t> fields,
                 std::span<const std::int64_t> indices, HostMemory memory = HostMemory::pageable);

/// The same for all fields, in the source's order.
Batch read_batch(const Source& source, std::span<const std::int64_t> indices);

}  // namespace decent
