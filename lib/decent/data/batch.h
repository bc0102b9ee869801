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

  std::int64_t samples() const { return fields.front().size(0); }
};

/// Pinned memory is what a GPU copies from by itself; to have it costs more, and needs a GPU.
enum class HostMemory { pageable, pinned };

/// Reads the samples `indices` (B of them, each in [0, source.size())) of the chosen fields, in the
/// order chosen, into fresh tensors. Safe to call from any thread.
Batch read_batch(const Source& source, std::span<const std::size_t> fields,
                 std::span<const std::int64_t> indices, HostMemory memory = HostMemory::pageable);

/// The same for every field, in the source's order.
Batch read_batch(const Source& source, std::span<const std::int64_t> indices);

}  // namespace decent
