#pragma once
// nadam, nadamw: torch.optim.NAdam (single tensor), nadamw with its decoupled_weight_decay. At a
// parameter's s-th update
//
//     nadamw: x <- x - lr wd x;    nadam: g <- g + wd x
//     m <- b1 m + (1 - b1) g
//     v <- b2 v + (1 - b2) g^2
//     u(i) = b1 (1 - 0.96^(i momentum_decay) / 2),  P(i) = u(1) u(2) .. u(i)
//     x <- x - lr ((1 - u(s)) / (1 - P(s)) g + u(s + 1) / (1 - P(s + 1)) m)
//              / (sqrt(v) / sqrt(1 - b2^s) + eps)

#include <array>

#include "decent/optim/rules/adam.h"

namespace decent::rules {

struct NAdamOptions {
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;

  AdamOptions adam() const { return {betas, eps, decoupled_weight_decay}; }
};

struct NAdam {
  using Options = NAdamOptions;
  static constexpr std::array kOptions = {
      betas<Options>(), eps<Options>(),
      Option<Options>{"momentum_decay",
                      "How fast the momentum rises from half of the first beta to all of it",
                      &Options::momentum_decay, at_least(0)}};
  // As in PyTorch, weights do not decay by default, decoupled or not.
  static constexpr std::array kNames = {Name{.name = "nadam"},
                                        Name{.name = "nadamw", .decoupled_weight_decay = true}};
  static constexpr std::array<std::string_view, 2> kStates = Adam::kStates;
  // As with adam, m and g are bounded by a multiple of sqrt(v). With the default options, no
  // gradients make a step longer than 15 lr; adam's bound of that kind is 8 lr.
  static constexpr bool kStepBoundedByLr = true;

  // m 9, denominator 9 (see adam.h). Share of g, coefficient and product, 8; share of m 11; the
  // sum 12, the quotient 13; the difference 14.
  static constexpr int kRoundings = 14;

  template <typename T>
  struct Coefficients {
    Adam::Coefficients<T> adam;  // without its step
    T gradient, mean;            // lr times the factors of g and m
  };

  /// u(i).
  static double momentum(const Options& options, double i) {
    return options.betas[0] * (1 - 0.5 * std::pow(0.96, i * options.momentum_decay));
  }

  /// P(s), which PyTorch keeps as a state. Factors from where 1 - P(i) is 1 in double change
  /// nothing, nor do powers of 0.96 from where 1 - 0.96^(i momentum_decay) / 2 is 1. One of the two
  /// is soon so, after some 2400 factors at most, whatever the options: if 0.96^momentum_decay is
  /// near 1, the factors stay near b1 / 2 for long; else its powers vanish. With the defaults it
  /// is 48.
  static double product(const Options& options, std::int64_t s) {
    constexpr double kUnseen = 0x1p-54;  // 1 minus this is 1
    const double ratio = std::pow(0.96, options.momentum_decay);
    double product = 1;
    double power = ratio;  // 0.96^(i momentum_decay)
    std::int64_t i = 1;
    for (; i <= s && product > kUnseen && power > kUnseen; ++i, power *= ratio)
      product *= options.betas[0] * (1 - 0.5 * power);
    return product * std::pow(options.betas[0], static_cast<double>(s - i + 1));
  }

  template <typename T>
  static Coefficients<T> coefficients(const Options& options, const ParameterStep& step) {
    const auto s = static_cast<double>(step.updates);
    const double now = momentum(options, s), next = momentum(options, s + 1);
    const double until_now = product(options, step.updates);
    return {.adam = Adam::coefficients<T>(options.adam(), step),
            .gradient = static_cast<T>(step.lr * (1 - now) / (1 - until_now)),
            .mean = static_cast<T>(step.lr * next / (1 - until_now * next))};
  }

  template <typename T>
  static DECENT_ELEMENT void element(T& x, T g, T& m, T& v, const Coefficients<T>& c) {
    Adam::accumulate(x, g, m, v, c.adam);
    x = c.adam.keep * x -
        (c.gradient * g + c.mean * m) / (std::sqrt(v) * c.adam.correction + c.adam.eps);
  }
};

}  // namespace decent::rules
