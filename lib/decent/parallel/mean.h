#pragma once
// Means of tensors whose sum could overflow, and rounding them to a narrower type.

#include <ATen/core/Tensor.h>

#include <bit>
#include <cstdint>

namespace decent {

/// A mean is the sum of addend * x over all x, divided by `divisor`. `addend` is a power of two, so
/// no sum of finite numbers overflows, and the result has the bits of sum / count (except where
/// x / count is subnormal).
struct MeanFactors {
  double addend = 1;
  double divisor = 1;
};

inline MeanFactors mean_factors(std::int64_t count) {
  const double addend = 1.0 / static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(count)));
  return {.addend = addend, .divisor = static_cast<double>(count) * addend};
}

/// Writes float64 `values` to `target`, of the same shape and any floating-point type, each rounded
/// once. (PyTorch's copy_ rounds to float32 on the way to a type of 16 bits.)
void copy_rounded_once(const at::Tensor& target, const at::Tensor& values);

}  // namespace decent
