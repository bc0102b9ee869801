#pragma once
// lion: Chen et al., "Symbolic Discovery of Optimization Algorithms" (arXiv 2302.06675),
// algorithm 2.
//
//     x <- x - lr (sign(b1 m + (1 - b1) g) + wd x)
//     m <- b2 m + (1 - b2) g

#include <array>

#include "decent/optim/rules/rule.h"

namespace decent::rules {

struct LionOptions {
  std::array<double, 2> betas = {0.9, 0.99};
};

struct Lion {
  using Options = LionOptions;
  static constexpr std::array kOptions = {betas<Options>()};
  static constexpr std::array kNames = {Name{.name = "lion"}};
  static constexpr std::array<std::string_view, 1> kStates = {"exp_avg"};
  static constexpr bool kStepBoundedByLr = true;

  // x: 1 - lr wd, coefficient and product, makes 5 of its 3, the difference 6. m: coefficient,
  // product, sum make 5 of g's 2. The argument of the sign has 5, too; if it is smaller than its
  // own error, the sign may be either.
  static constexpr int kRoundings = 6;

  template <typename T>
  struct Coefficients {
    T lr, keep;  // keep: 1 - lr wd
    T beta1, one_minus_beta1, beta2, one_minus_beta2;
  };

  template <typename T>
  static Coefficients<T> coefficients(const Options& options, const ParameterStep& step) {
    return {.lr = static_cast<T>(step.lr),
            .keep = static_cast<T>(1 - step.lr * step.weight_decay),
            .beta1 = static_cast<T>(options.betas[0]),
            .one_minus_beta1 = static_cast<T>(1 - options.betas[0]),
            .beta2 = static_cast<T>(options.betas[1]),
            .one_minus_beta2 = static_cast<T>(1 - options.betas[1])};
  }

  template <typename T>
  static DECENT_ELEMENT void element(T& x, T g, T& m, const Coefficients<T>& c) {
    const T direction = c.beta1 * m + c.one_minus_beta1 * g;
    T sign = direction > 0 ? T(1) : direction < 0 ? T(-1) : T(0);
    // Comparisons would hide NaN, and an infinity, which stays in m for ever, would have a finite
    // sign. This makes the weight NaN in both cases, as the other rules do; otherwise it adds 0.
    sign += direction - direction;
    x = c.keep * x - c.lr * sign;
    m = c.beta2 * m + c.one_minus_beta2 * g;
  }
};

}  // namespace decent::rules
