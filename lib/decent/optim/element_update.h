#pragma once
// One element of every update, shared by all loops over elements: what is tested here is what runs
// everywhere. The order of operations is torch's, so that the two differ by rounding of single
// operations at the most.

#include <cmath>

#include "decent/optim/kernels.h"

namespace decent::kernels {

template <typename T>
inline __attribute__((always_inline)) T mix_element(T x, T r, T self, T other) {
  return self * x + other * r;
}

// torch.optim.SGD (single tensor), dampening 0. With b = 0 before the first update, momentum * b +
// g is torch's clone of the gradient.
template <typename T>
inline __attribute__((always_inline)) void sgd_element(T& x, T g, T& b, const Sgd<T>& c) {
  g += c.weight_decay * x;
  b = c.momentum * b + g;
  const T direction = c.nesterov ? g + c.momentum * b : b;
  x -= c.lr * direction;
}

// torch.optim.Adam and AdamW (single tensor): decay, moments, x -= step_size * m / (sqrt(v) /
// correction + eps).
template <typename T>
inline __attribute__((always_inline)) void adam_element(T& x, T g, T& m, T& v, const Adam<T>& c) {
  x *= c.shrink;
  g += c.weight_decay * x;
  m += c.one_minus_beta1 * (g - m);
  v = c.beta2 * v + c.one_minus_beta2 * g * g;
  const T denominator = std::sqrt(v) / c.bias_correction2_sqrt + c.eps;
  x -= c.step_size * (m / denominator);
}

// decent-dp's accum_adam_foreach and accum_adamw_foreach. m and v only move where a round ends.
template <typename T>
inline __attribute__((always_inline)) void accum_adam_element(T& x, T g, T& m, T& v, T& a,
                                                              const AccumAdam<T>& c) {
  x *= c.shrink;
  g += c.weight_decay * x;
  a += c.share * g;
  const T first = m + c.one_minus_beta1 * g;
  const T second = v + c.one_minus_beta2 * g * g;
  const T denominator = std::sqrt(second) / c.bias_correction2_sqrt + c.eps;
  x -= c.step_size * (first / denominator);
}

template <typename T>
inline __attribute__((always_inline)) void accum_adam_end_round(T& m, T& v, T& a,
                                                                const AccumAdam<T>& c) {
  m = c.beta1 * (m + c.one_minus_beta1 * a);
  v = c.beta2 * (v + c.one_minus_beta2 * a * a);
  a = 0;
}

}  // namespace decent::kernels
