#pragma once
// Means of tensors whose sum could overflow, and how they become elements of a narrower type.

#include <ATen/core/Tensor.h>

#include <bit>
#include <cstdint>

namespace decent {

/// A mean is the sum of addend * x over all x, divided by `divisor`. `addend` is a power of two, so
/// that the result has the bits of sum / count (but where x / count is subnormal), and no sum of
/// finite numbers overflows.
struct MeanFactors {
  double addend = 1;
  double divisor = 1;
};

inline MeanFactors mean_factors(std::int64_t count) {
  const double addend = 1.0 / static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(count)));
  return {.addend = addend, .divisor = static_cast<double>(count) * addend};
}

/// Writes float64 `values` to `target`, a tensor of any floating-point type, each rounded once:
/// PyTorch rounds to float32 on the way to a type of 16 bits.
void copy_rounded_once(const at::Tensor& target, const at::Tensor& values);

}  // namespace decent
