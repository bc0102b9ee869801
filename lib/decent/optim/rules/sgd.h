#pragma once
// sgd: torch.optim.SGD (single tensor) with dampening 0.
//
//     g <- g + wd x
//     b <- momentum b + g
//     x <- x - lr b,  with nesterov: x - lr (g + momentum b)

#include <array>

#include "decent/optim/rules/rule.h"

namespace decent::rules {

struct SgdOptions {
  double momentum = 0;
  bool nesterov = false;
};

struct Sgd {
  using Options = SgdOptions;
  static constexpr std::array kOptions = {
      momentum<Options>(/*in_recipes=*/0.9),
      Option<Options>{"nesterov", "Nesterov's momentum, which needs a momentum above 0",
                      &Options::nesterov}};
  static constexpr std::array kNames = {Name{.name = "sgd"}};
  static constexpr std::array<std::string_view, 1> kStates = {"momentum_buffer"};
  static constexpr bool kStepBoundedByLr = false;

  // Decay, coefficient and product, makes 5 of x's 3, its sum 6, b's 7; nesterov's momentum,
  // coefficient and product, 9, its sum 10; lr, coefficient and product, 12; the difference 13.
  static constexpr int kRoundings = 13;

  static std::optional<OptionConflict> conflict(const Options& options) {
    if (!options.nesterov || options.momentum != 0) return std::nullopt;
    return OptionConflict{"nesterov", "true", "momentum", "> 0"};
  }

  template <typename T>
  struct Coefficients {
    T lr, weight_decay, momentum;
    bool nesterov;
  };

  template <typename T>
  static Coefficients<T> coefficients(const Options& options, const ParameterStep& step) {
    return {.lr = static_cast<T>(step.lr),
            .weight_decay = static_cast<T>(step.weight_decay),
            .momentum = static_cast<T>(options.momentum),
            .nesterov = options.nesterov};
  }

  template <typename T>
  static DECENT_ELEMENT void element(T& x, T g, T& b, const Coefficients<T>& c) {
    g += c.weight_decay * x;
    b = c.momentum * b + g;
    x -= c.lr * (c.nesterov ? g + c.momentum * b : b);
  }
};

}  // namespace decent::rules
