#pragma once
// The inner loops of the bucket updates, internal to this room. Each runs over n contiguous
// elements of one parameter.

#include <cstdint>

namespace decent::kernels {

/// Coefficients of one parameter's update, computed in double, rounded once to the element type.
template <typename T>
struct Sgd {
  T self, other;  // mixing
  T weight_decay, momentum, lr;
  bool nesterov;
};

template <typename T>
struct Adam {
  T self, other;   // mixing
  T shrink;        // 1 - lr * weight decay (decoupled), or 1
  T weight_decay;  // added to the gradient (not decoupled), or 0
  T one_minus_beta1, beta2, one_minus_beta2;
  T step_size;              // lr / (1 - beta1^s)
  T bias_correction2_sqrt;  // sqrt(1 - beta2^s)
  T eps;
};

// x, m, v, b: read and written; r (received) may be null: no mixing. Arrays do not overlap.
void mix(float* x, const float* r, float self, float other, std::int64_t n);
void mix(double* x, const double* r, double self, double other, std::int64_t n);
void sgd(float* x, const float* r, const float* g, float* b, const Sgd<float>& c, std::int64_t n);
void sgd(double* x, const double* r, const double* g, double* b, const Sgd<double>& c,
         std::int64_t n);
void adam(float* x, const float* r, const float* g, float* m, float* v, const Adam<float>& c,
          std::int64_t n);
void adam(double* x, const double* r, const double* g, double* m, double* v, const Adam<double>& c,
          std::int64_t n);

}  // namespace decent::kernels
