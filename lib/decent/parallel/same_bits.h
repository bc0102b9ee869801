#pragma once
// Which tensors hold the same bits on all workers, without sending the tensors.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

#include "decent/comm/communicator.h"

namespace decent {

/// A hash of the bits of each tensor's elements in row-major order: int64 [tensors] on the CPU. Two
/// different tensors have the same hash with a probability of 2^-64. Tensors of a GPU pass through
/// 16 MiB of pinned memory.
at::Tensor bit_hashes(std::span<const at::Tensor> tensors);

/// The same for tensors on any device, which are copied piece by piece through `passage`, uint8 [at
/// least 32] on the CPU. For bit_hashes(), and for tests.
std::vector<std::int64_t> hashes_through(const at::Tensor& passage,
                                         std::span<const at::Tensor> tensors);

/// `table` is int64 [rows, tensors] on the CPU, with hashes in this worker's rows and zeros in
/// other workers' rows; afterwards it has the rows of all workers. Returns, the same on all
/// workers, which tensors have the same hash in all rows. Collective.
std::vector<bool> same_in_all_rows(Communicator& communicator, const at::Tensor& table);

}  // namespace decent
