#pragma once
// What optimizers do with whole matrices, by LibTorch's products (optim/matrix.h).

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "decent/optim/bucket_update.h"

namespace decent {

/// For buckets on this device.
MatrixWork matrix_work(const at::Device& device);

/// Newton-Schulz iterations towards the nearest matrix with orthonormal rows or columns, with the
/// coefficients of torch.optim.Muon, which leave singular values of about 0.7 to 1.2. On the CPU
/// they are computed in the matrix's own type, on a GPU in bfloat16, as torch does everywhere.
/// `matrix`: [rows, cols].
at::Tensor newton_schulz(const at::Tensor& matrix, std::int64_t iterations);

}  // namespace decent
