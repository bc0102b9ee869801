#pragma once
// An optimizer of this library is a rule: one struct in one file of this folder, and an entry in
// all.h. make_update(), the CPU's loops, the CUDA kernels and the program's list of optimizers are
// generated from it. A rule has
//
//   Options              plain data with defaults
//   kOptions             the options that recipes and make_update() set, each with its range and
//                        meaning: an Option for each, of which no other file has to know
//   kNames               its names, each with its defaults
//   kStates              names of its state arrays, as in torch.optim; zero at the start
//   kStepBoundedByLr     whether no gradient, however large, moves a weight by more than a few
//                        learning rates in one step (which a grid that follows the learning rate
//                        relies on: modulo exchanges)
//   conflict(options)    optional; options that do not go together
//   Coefficients<T>      the numbers that one parameter's update multiplies with
//   coefficients<T>(..)  computes them in double; each is rounded to T once
//   element(x, g, states.., coefficients)
//                        one element of the update, as its source writes it
//   kRoundings           the bound on the error of a float32 result; see below
//
// A rule may have two forms, a whole one and a shorter one: element<kWhole>(..), with `whole` among
// its coefficients, and kStatesOfWhole: this many of its first states change only in the whole
// form, so that the loops need not write them in the other. accum_adam ends its rounds with the
// whole one.
//
// A rule that treats matrices as such (muon) has matrix_step(options), which is done with a
// matrix's gradient before the loops run and leaves its results in the two states (optim/matrix.h),
// and step_scale(options, matrix), the size of its steps in those of the rule's other parameters.
//
// A rule whose step depends on all elements of a parameter (adafactor) has factored_step(options,
// step). Its only state is the direction of a step, which is written after mixing and before the
// loops run, and lasts for that step. What it remembers is smaller than the parameter: tensors of
// its caller, under the names that torch.optim has for them.
//
// Rounding: the error of a result is at most n * 2^-24 times the sum of the absolute values of its
// terms, where n = kRoundings counts the roundings between an input (weight, received weight,
// gradient, state) and the result, those of the coefficients included. At most 16. `x` arrives with
// 3 (mixed: coefficient, product, sum), `g` with 2 (scaled: coefficient, product). The terms are
// those of the result to first order in its inputs: a sum has the terms of both sides, a product
// the terms of each factor times the other factor, a quotient the terms of both relative to the
// quotient. A square root halves the error of its argument. tests/unit/optim checks the bound.
//
// Elements are plain expressions of T that no compiler may contract (-ffp-contract=off,
// --fmad=false), and so give the same bits on every instruction set and on GPUs.

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "decent/core/element.h"
#include "decent/core/option.h"
#include "decent/optim/matrix.h"

namespace decent::rules {

/// One name of a rule, and its defaults.
struct Name {
  std::string_view name;
  bool decoupled_weight_decay = false;  // for rules whose options have it
  double weight_decay = 0;
};

// Options that several rules have.

template <class Options>
constexpr Option<Options> betas() {
  return {"betas", "Decay of the two running means", &Options::betas, from_to_below(0, 1)};
}

template <class Options>
constexpr Option<Options> eps() {
  return {"eps", "Added to the denominator", &Options::eps, at_least(0)};
}

template <class Options>
constexpr Option<Options> momentum(std::optional<double> in_recipes = {}) {
  return {.name = "momentum",
          .meaning = "Momentum",
          .member = &Options::momentum,
          .range = from_to_below(0, 1),
          .default_in_recipes = in_recipes};
}

/// The values on which the coefficients of one parameter's update depend, besides the options.
struct ParameterStep {
  double lr;
  double weight_decay;
  std::int64_t updates;  // of this parameter, this one included
  Matrix matrix = {};
};

template <class Rule, typename T>
using Coefficients = typename Rule::template Coefficients<T>;

template <class Rule>
inline constexpr std::size_t kStateCount = Rule::kStates.size();

template <class Rule>
concept HasConflicts = requires(const typename Rule::Options& options) { Rule::conflict(options); };

template <class Rule>
concept HasMatrixStep =
    requires(const typename Rule::Options& options) { Rule::matrix_step(options); };

template <class Rule>
concept HasFactoredStep =
    requires(const typename Rule::Options& options, const ParameterStep& step) {
      Rule::factored_step(options, step);
    };

template <class Rule>
concept HasTwoForms = requires { Rule::kStatesOfWhole; };

/// How many of a rule's first states change only in its whole form.
template <class Rule>
inline constexpr std::size_t kStatesOfWhole = 0;
template <HasTwoForms Rule>
inline constexpr std::size_t kStatesOfWhole<Rule> = Rule::kStatesOfWhole;

/// What one step does to every element before the rule.
template <typename T>
struct Scales {
  T self, other;  // mixing
  T grad;
};

/// self * x + other * received; the sum and the first product are rounded together.
template <typename T>
DECENT_ELEMENT T mixed(T x, T received, T self, T other) {
  return std::fma(self, x, other * received);
}

/// One element of one step: mixing, scaling of the gradient, the rule.
template <class Rule, bool kMix, bool kWhole, typename T, typename... States>
DECENT_ELEMENT void update_element(T& x, T received, T grad, const Scales<T>& scales,
                                   const Coefficients<Rule, T>& c, States&... states) {
  T z = x;
  if constexpr (kMix) z = mixed(x, received, scales.self, scales.other);
  if constexpr (HasTwoForms<Rule>) {
    Rule::template element<kWhole>(z, scales.grad * grad, states..., c);
  } else {
    Rule::element(z, scales.grad * grad, states..., c);
  }
  x = z;
}

}  // namespace decent::rules
