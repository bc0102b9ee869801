#include "decent/optim/kernels.h"

#include "decent/optim/element_choice.h"
#include "decent/optim/element_update.h"

// The loader picks the widest instruction set that the processor has: AVX-512 (x86-64-v4), AVX2
// with FMA (v3), or the baseline, where std::fma is a call, exact and slow: processors of before
// 2013. ThreadSanitizer's runtime is not up yet when the loader resolves the clones, and crashes
// there.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define DECENT_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define DECENT_CLONES
#endif

namespace decent::kernels {
namespace {

template <typename T>
DECENT_ELEMENT void mix_loop(T* __restrict x, const T* __restrict r, T self, T other,
                             std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = mixed<true>(x[i], r[i], self, other);
}

// What does not change from element to element is decided outside of the loops, so that each of
// them vectorises; they copy the coefficients, which the compiler then knows no store can change.

template <bool kMix, typename T>
DECENT_ELEMENT void sgd_loop(T* __restrict x, const T* __restrict r, const T* __restrict g,
                             T* __restrict b, const Sgd<T>& c, std::int64_t n) {
  const Sgd<T> k = c;
  for (std::int64_t i = 0; i < n; ++i) sgd_element<kMix>(x[i], kMix ? r[i] : T(0), g[i], b[i], k);
}

template <bool kMix, GradientKind kGradient, typename T>
DECENT_ELEMENT void adam_loop(T* __restrict x, const T* __restrict r, const T* __restrict g,
                              T* __restrict m, T* __restrict v, const Adam<T>& c, std::int64_t n) {
  const Adam<T> k = c;
  for (std::int64_t i = 0; i < n; ++i)
    adam_element<kMix, kGradient>(x[i], kMix ? r[i] : T(0), g[i], m[i], v[i], k);
}

template <bool kMix, GradientKind kGradient, bool kEndsRound, typename T>
DECENT_ELEMENT void accum_adam_loop(T* __restrict x, const T* __restrict r, const T* __restrict g,
                                    T* __restrict m, T* __restrict v, T* __restrict a,
                                    const AccumAdam<T>& c, std::int64_t n) {
  const AccumAdam<T> k = c;
  for (std::int64_t i = 0; i < n; ++i) {
    accum_adam_element<kMix, kGradient, kEndsRound>(x[i], kMix ? r[i] : T(0), g[i], m[i], v[i],
                                                    a[i], k);
  }
}

template <typename T>
DECENT_ELEMENT void sgd_choice(T* x, const T* r, const T* g, T* b, const Sgd<T>& c,
                               std::int64_t n) {
  if (r == nullptr) {
    sgd_loop<false>(x, r, g, b, c, n);
  } else {
    sgd_loop<true>(x, r, g, b, c, n);
  }
}

template <typename T>
DECENT_ELEMENT void adam_choice(T* x, const T* r, const T* g, T* m, T* v, const Adam<T>& c,
                                std::int64_t n) {
  choose(
      r != nullptr, c.gradient, [&](auto mix, auto gradient) __attribute__((always_inline)) {
        adam_loop<mix.value, gradient.value>(x, r, g, m, v, c, n);
      });
}

template <typename T>
DECENT_ELEMENT void accum_adam_choice(T* x, const T* r, const T* g, T* m, T* v, T* a,
                                      const AccumAdam<T>& c, std::int64_t n) {
  choose(
      r != nullptr, c.step.gradient, [&](auto mix, auto gradient) __attribute__((always_inline)) {
        if (c.ends_round) {
          accum_adam_loop<mix.value, gradient.value, true>(x, r, g, m, v, a, c, n);
        } else {
          accum_adam_loop<mix.value, gradient.value, false>(x, r, g, m, v, a, c, n);
        }
      });
}

// Lanes that do not depend on one another: the compiler keeps them in registers, as many to one as
// the processor has room for.
template <typename T>
DECENT_ELEMENT double sum_of_squares_loop(const T* __restrict g, std::int64_t n) {
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
  sgd_choice(x, r, g, b, c, n);
}

DECENT_CLONES void sgd(double* x, const double* r, const double* g, double* b, const Sgd<double>& c,
                       std::int64_t n) {
  sgd_choice(x, r, g, b, c, n);
}

DECENT_CLONES void adam(float* x, const float* r, const float* g, float* m, float* v,
                        const Adam<float>& c, std::int64_t n) {
  adam_choice(x, r, g, m, v, c, n);
}

DECENT_CLONES void adam(double* x, const double* r, const double* g, double* m, double* v,
                        const Adam<double>& c, std::int64_t n) {
  adam_choice(x, r, g, m, v, c, n);
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
