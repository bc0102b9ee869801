#pragma once
// rmsprop: torch.optim.RMSprop (single tensor), not centered.
//
//     g <- g + wd x
//     v <- alpha v + (1 - alpha) g^2
//     b <- momentum b + g / (sqrt(v) + eps)
//     x <- x - lr b

#include <array>

#include "decent/optim/rules/rule.h"

namespace decent::rules {

struct RmsPropOptions {
  double alpha = 0.99;
  double eps = 1e-8;
  double momentum = 0;
};

struct RmsProp {
  using Options = RmsPropOptions;
  static constexpr std::array kOptions = {
      Option<Options>{"alpha", "Decay of the running mean of squares", &Options::alpha,
                      from_to_below(0, 1)},
      eps<Options>(), momentum<Options>()};
  static constexpr std::array kNames = {Name{.name = "rmsprop"}};
  // Both states exist whatever the momentum, because a resumed run may have another one.
  static constexpr std::array<std::string_view, 2> kStates = {"momentum_buffer", "square_avg"};
  static constexpr bool kStepBoundedByLr = false;

  // g: 6 with the decay of x (see sgd.h). v: coefficient, two products, sum, 10. Denominator:
  // 10 / 2, root 6, eps 7. The quotient 8, b's sum 9; lr, coefficient and product, 11; the
  // difference 12.
  static constexpr int kRoundings = 12;

  template <typename T>
  struct Coefficients {
    T lr, weight_decay, alpha, one_minus_alpha, eps, momentum;
  };

  template <typename T>
  static Coefficients<T> coefficients(const Options& options, const ParameterStep& step) {
    return {.lr = static_cast<T>(step.lr),
            .weight_decay = static_cast<T>(step.weight_decay),
            .alpha = static_cast<T>(options.alpha),
            .one_minus_alpha = static_cast<T>(1 - options.alpha),
            .eps = static_cast<T>(options.eps),
            .momentum = static_cast<T>(options.momentum)};
  }

  template <typename T>
  static DECENT_ELEMENT void element(T& x, T g, T& b, T& v, const Coefficients<T>& c) {
    g += c.weight_decay * x;
    v = c.alpha * v + c.one_minus_alpha * g * g;
    b = c.momentum * b + g / (std::sqrt(v) + c.eps);
    x -= c.lr * b;
  }
};

}  // namespace decent::rules
