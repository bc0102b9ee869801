#pragma once
// One element of every update, shared by the CPU's loops and the kernels of other devices: what is
// tested here is what runs everywhere, with the same bits.
//
// In the element type T throughout, as float64 would cost twice the time where memory is fast. What
// roundings take away is kept where they would add up: each result is within 4 * 2^-24 (float32) of
// the sum of the absolute values of its terms, expanded to the inputs. std::fma is one instruction
// on every processor that these loops are compiled for. The error-free transformations are those of
// Dekker (1971) and Ogita, Rump, Oishi, "Accurate Sum and Dot Product" (2005).

#include <cmath>

#include "decent/optim/coefficients.h"

#ifdef __CUDACC__
#define DECENT_ELEMENT __host__ __device__ __forceinline__
#else
#define DECENT_ELEMENT inline __attribute__((always_inline))
#endif

namespace decent::kernels {

/// A number as hi + lo, where lo is about as large as hi's rounding error.
template <typename T>
struct Wide {
  T hi, lo;
};

// a * b, exactly.
template <typename T>
DECENT_ELEMENT Wide<T> product(T a, T b) {
  const T hi = a * b;
  return {hi, std::fma(a, b, -hi)};
}

template <typename T>
DECENT_ELEMENT Wide<T> product(const Coefficient<T>& c, T b) {
  const Wide<T> p = product(c.value, b);
  return {p.hi, std::fma(c.rest, b, p.lo)};
}

// a + b, exactly.
template <typename T>
DECENT_ELEMENT Wide<T> sum(T a, T b) {
  const T hi = a + b;
  const T part = hi - a;
  return {hi, (a - (hi - part)) + (b - part)};
}

template <typename T>
DECENT_ELEMENT Wide<T> sum(const Wide<T>& a, const Wide<T>& b) {
  const Wide<T> s = sum(a.hi, b.hi);
  return {s.hi, s.lo + (a.lo + b.lo)};
}

template <bool kMix, typename T>
DECENT_ELEMENT T mixed(T x, T r, T from_x, T from_r) {
  return kMix ? std::fma(from_x, x, from_r * r) : from_x * x;
}

/// torch.optim.SGD (single tensor), dampening 0.
template <bool kMix, typename T>
DECENT_ELEMENT void sgd_element(T& x, T r, T g, T& b, const Sgd<T>& c) {
  const T new_b =
      mixed<kMix>(x, r, c.b_from_x, c.b_from_r) + std::fma(c.b_from_g, g, c.b_from_b * b);
  x = mixed<kMix>(x, r, c.x_from_x, c.x_from_r) + std::fma(c.x_from_g, g, c.x_from_b * b);
  b = new_b;
}

template <bool kMix, GradientKind kGradient, typename T>
DECENT_ELEMENT Wide<T> gradient(T x, T r, T g, const Adam<T>& c) {
  if constexpr (kGradient == GradientKind::as_it_is) return {g, T(0)};
  Wide<T> result = product(c.g_from_g, g);
  if constexpr (kGradient == GradientKind::decayed) {
    result = sum(result, product(c.g_from_x, x));
    if constexpr (kMix) result = sum(result, product(c.g_from_r, r));
  }
  return result;
}

/// Moments after an update; the rests are what they lack, to first order, but for their own last
/// rounding.
template <typename T>
struct Moments {
  T m, m_rest, v, v_rest;
};

template <GradientKind kGradient, typename T>
DECENT_ELEMENT Moments<T> next_moments(T m, T v, const Wide<T>& g, const Adam<T>& c) {
  Wide<T> first = product(c.m_from_g, g.hi);
  Wide<T> kept = product(c.v_from_v, v);
  const Wide<T> weighted = product(c.v_from_g, g.hi);
  if constexpr (kGradient != GradientKind::as_it_is) {  // else g.lo is 0
    first.lo = std::fma(c.m_from_g.value, g.lo, first.lo);
    kept.hi = std::fma(weighted.hi + weighted.hi, g.lo, kept.hi);
  }
  return {.m = std::fma(c.m_from_m.value, m, first.hi),
          .m_rest = std::fma(c.m_from_m.rest, m, first.lo),
          .v = std::fma(weighted.hi, g.hi, kept.hi),
          .v_rest = std::fma(weighted.lo, g.hi, kept.lo)};
}

// m / (sqrt(v) + eps): a quotient in T, then one Newton step with all that is known to be missing.
template <typename T>
DECENT_ELEMENT T direction(const Moments<T>& moments, const Adam<T>& c) {
  const T root = std::sqrt(moments.v);
  const T root_lacks = std::fma(-root, root, moments.v) + moments.v_rest;  // times 2 root
  const Wide<T> denominator = sum(root, c.eps.value);
  const T inverse = T(1) / denominator.hi;
  const T denominator_rest = std::fma(root_lacks * inverse, T(0.5), denominator.lo + c.eps.rest);
  const T quotient = moments.m * inverse;
  T residual = std::fma(-quotient, denominator.hi, moments.m) + moments.m_rest;
  residual = std::fma(c.step_share, moments.m, residual);
  residual = std::fma(-quotient, denominator_rest, residual);
  const T better = std::fma(residual, inverse, quotient);
  // Infinities and zeros in the denominator have no residual: the quotient is as torch's.
  return better == better ? better : quotient;
}

/// torch.optim.Adam and AdamW (single tensor).
template <bool kMix, GradientKind kGradient, typename T>
DECENT_ELEMENT void adam_element(T& x, T r, T g, T& m, T& v, const Adam<T>& c) {
  const Moments<T> moments =
      next_moments<kGradient>(m, v, gradient<kMix, kGradient>(x, r, g, c), c);
  m = moments.m;
  v = moments.v;
  x = std::fma(-c.step, direction(moments, c), mixed<kMix>(x, r, c.x_from_x, c.x_from_r));
}

// Both moments from the mean gradient a + share g of the round.
template <typename T>
DECENT_ELEMENT void end_round(T& m, T& v, T a, const Wide<T>& g, const AccumAdam<T>& c) {
  const Wide<T> last = product(c.share, g.hi);
  const Wide<T> mean = sum(Wide<T>{a, T(0)}, {last.hi, std::fma(c.share.value, g.lo, last.lo)});
  m = std::fma(c.m_from_m, m,
               std::fma(c.m_from_a, a, std::fma(c.m_from_g, g.hi, c.m_from_g * g.lo)));
  const T weighted = c.v_from_a * mean.hi;
  v = std::fma(weighted, mean.hi, std::fma(weighted + weighted, mean.lo, c.v_from_v * v));
}

/// decent-dp's accum_adam_foreach and accum_adamw_foreach.
template <bool kMix, GradientKind kGradient, bool kEndsRound, typename T>
DECENT_ELEMENT void accum_adam_element(T& x, T r, T grad, T& m, T& v, T& a, const AccumAdam<T>& c) {
  const Wide<T> g = gradient<kMix, kGradient>(x, r, grad, c.step);
  x = std::fma(-c.step.step, direction(next_moments<kGradient>(m, v, g, c.step), c.step),
               mixed<kMix>(x, r, c.step.x_from_x, c.step.x_from_r));
  if constexpr (kEndsRound) {
    end_round(m, v, a, g, c);
    a = 0;
  } else {
    a = std::fma(c.share.value, g.hi, a);
  }
}

}  // namespace decent::kernels
