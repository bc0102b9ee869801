#pragma once
// What one parameter's update multiplies with, worked out in double and rounded once. Every formula
// is expanded to its inputs (x, received r, gradient g, states), so that few roundings lie between
// an input and the result. Plain structs: the CPU's loops and the kernels of other devices take the
// same ones.

namespace decent::kernels {

/// A double as two numbers of type T: value + rest.
template <typename T>
struct Coefficient {
  Coefficient() = default;
  explicit Coefficient(double exact)
      : value(static_cast<T>(exact)), rest(static_cast<T>(exact - static_cast<double>(value))) {}

  T value = 0;
  T rest = 0;
};

/// x' = x_from_x x + x_from_r r + x_from_g g + x_from_b b, and b' likewise.
template <typename T>
struct Sgd {
  T x_from_x, x_from_r, x_from_g, x_from_b;
  T b_from_x, b_from_r, b_from_g, b_from_b;
};

/// How the gradient of an update comes about.
enum class GradientKind {
  as_it_is,
  scaled,   // g_from_g g
  decayed,  // g_from_g g + g_from_x x + g_from_r r
};

/// x' = x_from_x x + x_from_r r - step m' / (sqrt(v') + eps), m' = m_from_m m + m_from_g g,
/// v' = v_from_v v + v_from_g g^2.
template <typename T>
struct Adam {
  GradientKind gradient;
  T x_from_x, x_from_r;
  Coefficient<T> g_from_g, g_from_x, g_from_r;
  Coefficient<T> m_from_m, m_from_g;
  Coefficient<T> v_from_v, v_from_g;
  T step;              // lr / (1 - beta1^s) * sqrt(1 - beta2^s)
  T step_share;        // what `step` lacks of its exact value, over it
  Coefficient<T> eps;  // times sqrt(1 - beta2^s)
};

/// Adam's step from the moments as they are plus this gradient; a' = a + share g. Where a round
/// ends: m' = m_from_m m + m_from_a a', v' = v_from_v v + v_from_a a'^2, a' = 0.
template <typename T>
struct AccumAdam {
  Adam<T> step;
  bool ends_round;
  Coefficient<T> share;
  T m_from_m, m_from_a, m_from_g;  // m_from_g: m_from_a times share
  T v_from_v, v_from_a;
};

}  // namespace decent::kernels
