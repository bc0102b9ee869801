#pragma once
// radam, radamw: torch.optim.RAdam (single tensor), radamw with its decoupled_weight_decay. At a
// parameter's s-th update
//
//     radamw: x <- x - lr wd x;    radam: g <- g + wd x
//     m <- b1 m + (1 - b1) g
//     v <- b2 v + (1 - b2) g^2
//     n = n(inf) - 2 s b2^s / (1 - b2^s),  n(inf) = 2 / (1 - b2) - 1
//     n > 5:   r = sqrt((n - 4) (n - 2) n(inf) / ((n(inf) - 4) (n(inf) - 2) n))
//              x <- x - lr / (1 - b1^s) r m sqrt(1 - b2^s) / (sqrt(v) + eps)
//     n <= 5:  x <- x - lr / (1 - b1^s) m

#include <array>

#include "decent/optim/rules/adam.h"

namespace decent::rules {

struct RAdam {
  using Options = AdamOptions;
  static constexpr std::array kOptions = Adam::kOptions;
  // PyTorch's NAdam and RAdam do not decay by default, decoupled or not.
  static constexpr std::array kNames = {Name{.name = "radam"},
                                        Name{.name = "radamw", .decoupled_weight_decay = true}};
  static constexpr std::array<std::string_view, 2> kStates = Adam::kStates;
  // The first steps, those with n <= 5, are as long as the gradient makes them.
  static constexpr bool kStepBoundedByLr = false;

  // As adam's but for the denominator, which has fewer: m 9, step m 11, the quotient 12; the
  // difference 13.
  static constexpr int kRoundings = 13;

  template <typename T>
  struct Coefficients {
    Adam::Coefficients<T> adam;  // its step is multiplied by r sqrt(1 - b2^s) if n > 5
    bool rectified;              // n > 5
  };

  template <typename T>
  static Coefficients<T> coefficients(const Options& options, const ParameterStep& step) {
    const auto s = static_cast<double>(step.updates);
    const double forgotten = std::pow(options.betas[1], s);
    const double longest = 2 / (1 - options.betas[1]) - 1;                // n(inf)
    const double length = longest - 2 * s * forgotten / (1 - forgotten);  // n
    const bool rectified = length > 5;
    const double square =
        (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length);
    const double factor = rectified ? std::sqrt(square * (1 - forgotten)) : 1;
    Coefficients<T> made{.adam = Adam::coefficients<T>(options, step), .rectified = rectified};
    made.adam.step = static_cast<T>(step.lr / (1 - std::pow(options.betas[0], s)) * factor);
    return made;
  }

  template <typename T>
  static DECENT_ELEMENT void element(T& x, T g, T& m, T& v, const Coefficients<T>& c) {
    Adam::accumulate(x, g, m, v, c.adam);
    const T denominator = c.rectified ? std::sqrt(v) + c.adam.eps : T(1);
    x = c.adam.keep * x - c.adam.step * m / denominator;
  }
};

}  // namespace decent::rules
