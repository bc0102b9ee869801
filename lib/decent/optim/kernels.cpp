#include "decent/optim/kernels.h"

#include "decent/optim/element_update.h"

// The loader picks the widest instruction set that the processor has. ThreadSanitizer's runtime is
// not up yet when the loader resolves the clones, and crashes there.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define DECENT_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define DECENT_CLONES
#endif

namespace decent::kernels {
namespace {

template <typename T>
inline __attribute__((always_inline)) void mix_loop(T* __restrict x, const T* __restrict r, T self,
                                                    T other, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = mix_element(x[i], r[i], self, other);
}

template <typename T>
inline __attribute__((always_inline)) void sgd_loop(T* __restrict x, const T* __restrict r,
                                                    const T* __restrict g, T* __restrict b,
                                                    const Sgd<T>& c, std::int64_t n) {
  const Sgd<T> k = c;  // a copy that the compiler knows no store can change
  if (r == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) sgd_element(x[i], g[i], b[i], k);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      x[i] = mix_element(x[i], r[i], k.self, k.other);
      sgd_element(x[i], g[i], b[i], k);
    }
  }
}

template <typename T>
inline __attribute__((always_inline)) void adam_loop(T* __restrict x, const T* __restrict r,
                                                     const T* __restrict g, T* __restrict m,
                                                     T* __restrict v, const Adam<T>& c,
                                                     std::int64_t n) {
  const Adam<T> k = c;
  if (r == nullptr) {
    for (std::int64_t i = 0; i < n; ++i) adam_element(x[i], g[i], m[i], v[i], k);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      x[i] = mix_element(x[i], r[i], k.self, k.other);
      adam_element(x[i], g[i], m[i], v[i], k);
    }
  }
}

}  // namespace

DECENT_CLONES void mix(float* x, const float* r, float self, float other, std::int64_t n) {
  mix_loop(x, r, self, other, n);
}

DECENT_CLONES void mix(double* x, const double* r, double self, double other, std::int64_t n) {
  mix_loop(x, r, self, other, n);
}

DECENT_CLONES void sgd(float* x, const float* r, const float* g, float* b, const Sgd<float>& c,
                       std::int64_t n) {
  sgd_loop(x, r, g, b, c, n);
}

DECENT_CLONES void sgd(double* x, const double* r, const double* g, double* b, const Sgd<double>& c,
                       std::int64_t n) {
  sgd_loop(x, r, g, b, c, n);
}

DECENT_CLONES void adam(float* x, const float* r, const float* g, float* m, float* v,
                        const Adam<float>& c, std::int64_t n) {
  adam_loop(x, r, g, m, v, c, n);
}

DECENT_CLONES void adam(double* x, const double* r, const double* g, double* m, double* v,
                        const Adam<double>& c, std::int64_t n) {
  adam_loop(x, r, g, m, v, c, n);
}

}  // namespace decent::kernels
