#pragma once
// What optimizers do with whole parameters, by LibTorch's products and norms (optim/matrix.h).

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "decent/optim/bucket_update.h"
#include "decent/parallel/named_tensors.h"

namespace decent {

/// For buckets on this device.
MatrixWork matrix_work(const at::Device& device);

/// Newton-Schulz iterations towards the nearest matrix with orthonormal rows or columns, with the
/// coefficients of torch.optim.Muon, which leave singular values of about 0.7 to 1.2. On the CPU
/// they are computed in the matrix's own type, on a GPU in bfloat16, as torch does everywhere.
/// `matrix`: [rows, cols].
at::Tensor newton_schulz(const at::Tensor& matrix, std::int64_t iterations);

/// What adafactor remembers of a parameter of these extents: the names of torch.optim.Adafactor's
/// states, and their extents.
std::vector<std::pair<std::string, std::vector<std::int64_t>>> factor_extents(
    at::IntArrayRef sizes);

/// One parameter during a factored step, in tensors of its shape.
struct FactoredTensors {
  at::Tensor x;
  at::Tensor grad;
  at::Tensor direction;         // is written
  const NamedTensors& factors;  // of factor_extents(); they change unless the scale is NaN
};

/// Does what FactoredStep says, with the gradient as `step` scales it.
void take_factored_step(const BucketStep& step, const FactoredStep& how, const FactoredTensors& of);

}  // namespace decent
