#pragma once
// adafactor: torch.optim.Adafactor (single tensor), after Shazeer and Stern, arXiv 1804.04235. At
// update t of a parameter of n elements, with b = 1 - t^beta2_decay and rms(v) = |v| / sqrt(n):
//
//     of a tensor with at least two dimensions, means over the last one and the one before it
//         R <- b R + (1 - b) mean of g^2 in each row,  C <- b C + (1 - b) the same of each column
//         V = R C / max(mean of R, eps1)
//     of any other
//         V <- b V + (1 - b) g^2
//     u = g / sqrt(max(V, eps1^2))
//     alpha = max(eps2, rms(x)) min(lr, 1 / sqrt(t))
//     x <- x - lr wd x - alpha u / max(1, rms(u) / d)

#include <algorithm>
#include <array>
#include <optional>

#include "decent/optim/rules/rule.h"

namespace decent::rules {

struct AdafactorOptions {
  double beta2_decay = -0.8;
  std::optional<double> eps1;
  double eps2 = 1e-3;
  double d = 1;
};

struct Adafactor {
  using Options = AdafactorOptions;
  static constexpr std::array kOptions = {
      Option<Options>{"beta2_decay",
                      "Update t takes the share t^beta2_decay of a squared gradient into the "
                      "running mean",
                      &Options::beta2_decay, at_most(0)},
      Option<Options>{"eps1",
                      "Least root of a running mean of squares; null: the distance from 1 to the "
                      "next number of the parameter's type",
                      &Options::eps1, at_least(0)},
      Option<Options>{"eps2", "Least root mean square of a parameter that scales its steps",
                      &Options::eps2, at_least(0)},
      Option<Options>{"d", "Most root mean square of a step before it is scaled", &Options::d,
                      at_least(1)}};
  static constexpr std::array kNames = {Name{.name = "adafactor"}};
  // Is written before the loops run, and lasts for one step: alpha u / max(1, rms(u) / d).
  static constexpr std::array<std::string_view, 1> kStates = {"direction"};
  // The root mean square of a step is at most d max(eps2, rms(x)) lr, which grows with the weights,
  // and one element may have sqrt(n) times that.
  static constexpr bool kStepBoundedByLr = false;

  // x: 1 - lr wd, coefficient and product, makes 5 of its 3, the difference 6.
  static constexpr int kRoundings = 6;

  template <typename T>
  struct Coefficients {
    T keep;  // 1 - lr wd
  };

  static FactoredStep factored_step(const Options& options, const ParameterStep& step) {
    const auto updates = static_cast<double>(step.updates);
    return {.share = std::pow(updates, options.beta2_decay),
            .rho = std::min(step.lr, 1 / std::sqrt(updates)),
            .eps1 = options.eps1,
            .eps2 = options.eps2,
            .d = options.d};
  }

  template <typename T>
  static Coefficients<T> coefficients(const Options&, const ParameterStep& step) {
    return {.keep = static_cast<T>(1 - step.lr * step.weight_decay)};
  }

  template <typename T>
  static DECENT_ELEMENT void element(T& x, T /*g*/, T& direction, const Coefficients<T>& c) {
    x = c.keep * x - direction;
  }
};

}  // namespace decent::rules
