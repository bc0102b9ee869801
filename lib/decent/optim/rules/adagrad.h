#pragma once
// adagrad: torch.optim.Adagrad (single tensor). At a parameter's s-th update
//
//     g <- g + wd x
//     v <- v + g^2
//     x <- x - lr / (1 + (s - 1) lr_decay) g / (sqrt(v + v0) + eps),  v0 =
//     initial_accumulator_value
//
// PyTorch's `sum` begins with v0. States begin with zero here, so v is its sum without v0.

#include <array>

#include "decent/optim/rules/rule.h"

namespace decent::rules {

struct AdagradOptions {
  double lr_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
};

struct Adagrad {
  using Options = AdagradOptions;
  static constexpr std::array kOptions = {
      Option<Options>{"lr_decay", "Update s divides the learning rate by 1 + (s - 1) * lr_decay",
                      &Options::lr_decay, at_least(0)},
      Option<Options>{"initial_accumulator_value", "Start of the sum of squares",
                      &Options::initial_accumulator_value, at_least(0)},
      eps<Options>()};
  static constexpr std::array kNames = {Name{.name = "adagrad"}};
  static constexpr std::array<std::string_view, 1> kStates = {"sum"};
  // g^2 is part of v: no step is longer than lr.
  static constexpr bool kStepBoundedByLr = true;

  // g: 6 with the decay of x (see sgd.h). v: product 7, sum 8. Denominator: v0's sum 9, half of
  // that 5, root 6, eps 7. lr g, coefficient and product, 8; the quotient 9; the difference 10.
  static constexpr int kRoundings = 10;

  template <typename T>
  struct Coefficients {
    T lr;  // that of this update
    T weight_decay, initial, eps;
  };

  template <typename T>
  static Coefficients<T> coefficients(const Options& options, const ParameterStep& step) {
    const auto before = static_cast<double>(step.updates - 1);
    return {.lr = static_cast<T>(step.lr / (1 + before * options.lr_decay)),
            .weight_decay = static_cast<T>(step.weight_decay),
            .initial = static_cast<T>(options.initial_accumulator_value),
            .eps = static_cast<T>(options.eps)};
  }

  template <typename T>
  static DECENT_ELEMENT void element(T& x, T g, T& v, const Coefficients<T>& c) {
    g += c.weight_decay * x;
    v += g * g;
    x -= c.lr * g / (std::sqrt(v + c.initial) + c.eps);
  }
};

}  // namespace decent::rules
