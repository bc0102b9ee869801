#pragma once
// accum_adam, accum_adamw: decent-dp's AccumAdam and AccumAdamW. Adam whose moments change once in
// K = accum_iter updates, by the mean gradient of these K, while every update steps with its own
// gradient added to them. At a parameter's s-th update
//
//     accum_adamw: x <- x - lr wd x;    accum_adam: g <- g + wd x
//     a <- a + g / K
//     m' = m + (1 - b1) g,  v' = v + (1 - b2) g^2,  n = ceil(s / K)
//     x <- x - lr / (1 - b1^n) m' / (sqrt(v') / sqrt(1 - b2^n) + eps)
//     where K divides s:  m <- b1 (m + (1 - b1) a),  v <- b2 (v + (1 - b2) a^2),  a <- 0

#include <array>

#include "decent/optim/rules/adam.h"

namespace decent::rules {

struct AccumAdamOptions {
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  bool decoupled_weight_decay = false;
  std::int64_t accum_iter = 4;  // K

  AdamOptions adam() const { return {betas, eps, decoupled_weight_decay}; }
};

struct AccumAdam {
  using Options = AccumAdamOptions;
  static constexpr std::array kOptions = {
      betas<Options>(), eps<Options>(),
      Option<Options>{"accum_iter", "Steps over which gradients accumulate", &Options::accum_iter,
                      at_least(1)}};
  static constexpr std::array kNames = {
      Name{.name = "accum_adam"},
      Name{.name = "accum_adamw", .decoupled_weight_decay = true, .weight_decay = 0.1}};
  static constexpr std::array<std::string_view, 3> kStates = {"exp_avg", "exp_avg_sq",
                                                              "accum_grad"};
  static constexpr bool kStepBoundedByLr = true;
  static constexpr std::size_t kStatesOfWhole = 2;

  // x as adam's, 13. a: g's 6, share (coefficient, product) 8, sum 9. v: coefficient, two products,
  // sum, 13, and once more coefficient and product, 15; m 14.
  static constexpr int kRoundings = 15;

  template <typename T>
  struct Coefficients {
    Adam::Coefficients<T> adam;
    T share;  // 1 / K
    bool whole;
  };

  template <typename T>
  static Coefficients<T> coefficients(const Options& options, const ParameterStep& step) {
    const std::int64_t k = options.accum_iter;
    ParameterStep round = step;
    round.updates = (step.updates - 1) / k + 1;  // n; s + k - 1 could overflow
    return {.adam = Adam::coefficients<T>(options.adam(), round),
            .share = static_cast<T>(1 / static_cast<double>(k)),
            .whole = step.updates % k == 0};
  }

  template <bool kWhole, typename T>
  static DECENT_ELEMENT void element(T& x, T g, T& m, T& v, T& a, const Coefficients<T>& c) {
    g += c.adam.weight_decay * x;
    a += c.share * g;
    Adam::descend(x, m + c.adam.one_minus_beta1 * g, v + c.adam.one_minus_beta2 * g * g, c.adam);
    if constexpr (kWhole) {
      m = c.adam.beta1 * (m + c.adam.one_minus_beta1 * a);
      v = c.adam.beta2 * (v + c.adam.one_minus_beta2 * a * a);
      a = 0;
    }
  }
};

}  // namespace decent::rules
