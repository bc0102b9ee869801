#pragma once
// Which tensors hold the same bits on all workers, without sending the tensors.

#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

#include "decent/comm/communicator.h"

namespace decent {

/// A hash of the elements of each tensor, bit for bit and row-major: int64 [tensors] on the CPU. A
/// chance of 2^-64 that two different ones have the same.
at::Tensor bit_hashes(std::span<const at::Tensor> tensors);

/// `table` is int64 [rows, tensors], on the CPU: hashes in the rows that are this worker's own,
/// zeros in those of others. Tells, alike on all workers, which tensors have one hash in all rows;
/// the table is that of all workers afterwards. Collective.
std::vector<bool> same_in_all_rows(Communicator& world, const at::Tensor& table);

}  // namespace decent
