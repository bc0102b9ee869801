#pragma once
// The inner loops of the bucket updates, internal to this room. Each runs over n contiguous
// elements of one parameter.

#include <cstdint>

namespace decent::kernels {

/// Coefficients of one parameter's update, computed in double, rounded once to the element type.
template <typename T>
struct Sgd {
  T self, other;  // mixing
  T grad_scale;
  T weight_decay, momentum, lr;
  bool nesterov;
};

template <typename T>
struct Adam {
  T self, other;  // mixing
  T grad_scale;
  T shrink;        // 1 - lr * weight decay (decoupled), or 1
  T weight_decay;  // added to the gradient (not decoupled), or 0
  T one_minus_beta1, beta2, one_minus_beta2;
  T step_size;              // lr / (1 - beta1^s)
  T bias_correction2_sqrt;  // sqrt(1 - beta2^s)
  T eps;
};

template <typename T>
struct AccumAdam {
  T self, other;  // mixing
  T grad_scale;
  T shrink;        // as Adam's
  T weight_decay;  // as Adam's
  T share;         // 1 / accum_iter
  T beta1, one_minus_beta1, beta2, one_minus_beta2;
  T step_size;              // lr / (1 - beta1^n)
  T bias_correction2_sqrt;  // sqrt(1 - beta2^n)
  T eps;
  bool ends_round;  // the moments move after this update
};

// x, m, v, b, a: read and written; r (received) may be null: no mixing. Arrays do not overlap.
void mix(float* x, const float* r, float self, float other, std::int64_t n);
void mix(double* x, const double* r, double self, double other, std::int64_t n);
void sgd(float* x, const float* r, const float* g, float* b, const Sgd<float>& c, std::int64_t n);
void sgd(double* x, const double* r, const double* g, double* b, const Sgd<double>& c,
         std::int64_t n);
void adam(float* x, const float* r, const float* g, float* m, float* v, const Adam<float>& c,
          std::int64_t n);
void adam(double* x, const double* r, const double* g, double* m, double* v, const Adam<double>& c,
          std::int64_t n);

void accum_adam(float* x, const float* r, const float* g, float* m, float* v, float* a,
                const AccumAdam<float>& c, std::int64_t n);
void accum_adam(double* x, const double* r, const double* g, double* m, double* v, double* a,
                const AccumAdam<double>& c, std::int64_t n);

/// Sum of g[i]^2, added up in 16 lanes of double, whatever the instruction set.
double sum_of_squares(const float* g, std::int64_t n);
double sum_of_squares(const double* g, std::int64_t n);

}  // namespace decent::kernels
