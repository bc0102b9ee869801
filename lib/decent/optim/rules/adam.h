#pragma once
// adam, adamw: torch.optim.Adam and AdamW (single tensor). At a parameter's s-th update
//
//     adamw: x <- x - lr wd x;    adam: g <- g + wd x
//     m <- b1 m + (1 - b1) g
//     v <- b2 v + (1 - b2) g^2
//     x <- x - lr / (1 - b1^s) m / (sqrt(v) / sqrt(1 - b2^s) + eps)

#include <array>

#include "decent/optim/rules/rule.h"

namespace decent::rules {

struct AdamOptions {
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  bool decoupled_weight_decay = false;
};

struct Adam {
  using Options = AdamOptions;
  static constexpr std::array kOptions = {betas<Options>(), eps<Options>()};
  static constexpr std::array kNames = {
      Name{.name = "adamw", .decoupled_weight_decay = true, .weight_decay = 0.1},
      Name{.name = "adam"}};
  static constexpr std::array<std::string_view, 2> kStates = {"exp_avg", "exp_avg_sq"};
  static constexpr bool kStepBoundedByLr = true;

  // g: 6 with the decay of x (see sgd.h). m: coefficient, product, sum, 9. v: coefficient, two
  // products, sum, 10. Denominator: 10 / 2, root 6, correction (coefficient, product) 8, eps 9. Of
  // step m 11, the quotient 12; the difference 13.
  static constexpr int kRoundings = 13;

  template <typename T>
  struct Coefficients {
    T keep, weight_decay;  // 1 - lr wd if decay is decoupled; the decay of the gradient if not
    T beta1, one_minus_beta1, beta2, one_minus_beta2;
    T step;        // lr / (1 - beta1^s)
    T correction;  // 1 / sqrt(1 - beta2^s)
    T eps;
  };

  template <typename T>
  static Coefficients<T> coefficients(const Options& options, const ParameterStep& step) {
    const bool decoupled = options.decoupled_weight_decay;
    const auto s = static_cast<double>(step.updates);
    return {.keep = static_cast<T>(decoupled ? 1 - step.lr * step.weight_decay : 1),
            .weight_decay = static_cast<T>(decoupled ? 0 : step.weight_decay),
            .beta1 = static_cast<T>(options.betas[0]),
            .one_minus_beta1 = static_cast<T>(1 - options.betas[0]),
            .beta2 = static_cast<T>(options.betas[1]),
            .one_minus_beta2 = static_cast<T>(1 - options.betas[1]),
            .step = static_cast<T>(step.lr / (1 - std::pow(options.betas[0], s))),
            .correction = static_cast<T>(1 / std::sqrt(1 - std::pow(options.betas[1], s))),
            .eps = static_cast<T>(options.eps)};
  }

  template <typename T>
  static DECENT_ELEMENT void element(T& x, T g, T& m, T& v, const Coefficients<T>& c) {
    accumulate(x, g, m, v, c);
    descend(x, m, v, c);
  }

  /// The lines before the last: the decay of the gradient, and both moments.
  template <typename T>
  static DECENT_ELEMENT void accumulate(T x, T& g, T& m, T& v, const Coefficients<T>& c) {
    g += c.weight_decay * x;
    m = c.beta1 * m + c.one_minus_beta1 * g;
    v = c.beta2 * v + c.one_minus_beta2 * g * g;
  }

  /// The last line of the formula, from both moments, and the decoupled decay.
  template <typename T>
  static DECENT_ELEMENT void descend(T& x, T m, T v, const Coefficients<T>& c) {
    x = c.keep * x - c.step * m / (std::sqrt(v) * c.correction + c.eps);
  }
};

}  // namespace decent::rules
