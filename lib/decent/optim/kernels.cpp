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
    for (std::int64_t i = 0; i < n; ++i) sgd_element(x[i], k.grad_scale * g[i], b[i], k);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      x[i] = mix_element(x[i], r[i], k.self, k.other);
      sgd_element(x[i], k.grad_scale * g[i], b[i], k);
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
    for (std::int64_t i = 0; i < n; ++i) adam_element(x[i], k.grad_scale * g[i], m[i], v[i], k);
  } else {
    for (std::int64_t i = 0; i < n; ++i) {
      x[i] = mix_element(x[i], r[i], k.self, k.other);
      adam_element(x[i], k.grad_scale * g[i], m[i], v[i], k);
    }
  }
}

// Mixing and the end of a round are decided outside of the loop, so that each loop vectorises.
template <bool kMix, bool kEndsRound, typename T>
inline __attribute__((always_inline)) void accum_adam_loop(T* __restrict x, const T* __restrict r,
                                                           const T* __restrict g, T* __restrict m,
                                                           T* __restrict v, T* __restrict a,
                                                           const AccumAdam<T>& c, std::int64_t n) {
  const AccumAdam<T> k = c;
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (kMix) x[i] = mix_element(x[i], r[i], k.self, k.other);
    accum_adam_element(x[i], k.grad_scale * g[i], m[i], v[i], a[i], k);
    if constexpr (kEndsRound) accum_adam_end_round(m[i], v[i], a[i], k);
  }
}

template <typename T>
inline __attribute__((always_inline)) void accum_adam_choice(T* x, const T* r, const T* g, T* m,
                                                             T* v, T* a, const AccumAdam<T>& c,
                                                             std::int64_t n) {
  if (r == nullptr && c.ends_round) {
    accum_adam_loop<false, true>(x, r, g, m, v, a, c, n);
  } else if (r == nullptr) {
    accum_adam_loop<false, false>(x, r, g, m, v, a, c, n);
  } else if (c.ends_round) {
    accum_adam_loop<true, true>(x, r, g, m, v, a, c, n);
  } else {
    accum_adam_loop<true, false>(x, r, g, m, v, a, c, n);
  }
}

// Lanes that do not depend on one another: the compiler keeps them in registers, as many to one as
// the processor has room for.
template <typename T>
inline __attribute__((always_inline)) double sum_of_squares_loop(const T* __restrict g,
                                                                 std::int64_t n) {
  constexpr std::int64_t kLanes = 16;
  double lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::int64_t l = 0; l < kLanes; ++l) {
      const double value = static_cast<double>(g[i + l]);
      lanes[l] += value * value;
    }
  }
  for (std::int64_t l = 0; i < n; ++i, ++l) {
    const double value = static_cast<double>(g[i]);
    lanes[l] += value * value;
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
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

DECENT_CLONES void accum_adam(float* x, const float* r, const float* g, float* m, float* v,
                              float* a, const AccumAdam<float>& c, std::int64_t n) {
  accum_adam_choice(x, r, g, m, v, a, c, n);
}

DECENT_CLONES void accum_adam(double* x, const double* r, const double* g, double* m, double* v,
                              double* a, const AccumAdam<double>& c, std::int64_t n) {
  accum_adam_choice(x, r, g, m, v, a, c, n);
}

DECENT_CLONES double sum_of_squares(const float* g, std::int64_t n) {
  return sum_of_squares_loop(g, n);
}

DECENT_CLONES double sum_of_squares(const double* g, std::int64_t n) {
  return sum_of_squares_loop(g, n);
}

}  // namespace decent::kernels
