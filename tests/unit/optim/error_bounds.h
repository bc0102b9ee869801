#pragma once
// An update in float32 against the same formula in float64, element by element. A value is carried
// with the sum of the absolute values of its terms, to first order in the inputs (rules/rule.h):
// a result may be off by n * 2^-24 of it, n the rule's kRoundings, plus what denormals can move.
// Over values of all sizes, NaN and infinities.

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>

#include "../support/bucket_problem.h"

namespace decent::testing {

inline constexpr double kUnit = 0x1p-24;
inline constexpr double kTiny = 0x1p-149;  // an underflow moves a product by half of it

/// A value, its terms, and what underflows may have moved it by.
struct Sum {
  double value = 0;
  double terms = 0;
  double slack = 0;
};

inline Sum input(double value) { return {value, std::abs(value), 0}; }

inline Sum operator+(const Sum& a, const Sum& b) {
  return {a.value + b.value, a.terms + b.terms, a.slack + b.slack};
}

inline Sum operator*(const Sum& a, const Sum& b) {
  const double first = std::abs(a.value), second = std::abs(b.value);
  return {a.value * b.value, first * b.terms + second * a.terms,
          first * b.slack + second * a.slack + a.slack * b.slack + kTiny};
}

/// A coefficient times a value: the coefficient's rounding is counted with the value's.
inline Sum operator*(double c, const Sum& a) {
  return {c * a.value, std::abs(c) * a.terms, std::abs(c) * a.slack + kTiny};
}

inline Sum operator/(const Sum& a, const Sum& b) {
  const double size = std::abs(a.value / b.value);
  const double least = std::abs(b.value) - b.slack;
  return {a.value / b.value, a.terms / std::abs(b.value) + size * (b.terms / std::abs(b.value)),
          (a.slack + (b.slack > 0 ? size * b.slack : 0)) / least + kTiny};
}

// It halves the errors that came before, by half of the count: the terms stay what they were, over
// the root.
inline Sum sqrt(const Sum& a) {
  const double root = std::sqrt(a.value);
  return {root, root > 0 ? a.terms / root : 0,
          std::sqrt(a.value + a.slack) - std::sqrt(std::max(a.value - a.slack, 0.0))};
}

struct Setting {
  double self, other;  // mixing
  double lr, weight_decay, grad_scale;
  std::int64_t updates;
};

/// What an element is before a step, mixed and scaled as every rule gets it, and after it.
struct Before {
  Sum x, g;
  std::array<Sum, 3> states;
};
struct After {
  Sum x;
  std::vector<Sum> states;
};

/// A rule written in Sums.
using Formula = std::function<After(const Before&, const Setting&)>;

// Sizes from 2^-149 to 2^40, zeros.
inline float any_size(std::mt19937& random) {
  std::uniform_int_distribution<int> kind(0, 9);
  std::uniform_real_distribution<float> mantissa(-1, 1);
  const int k = kind(random);
  if (k == 0) return 0;
  if (k == 1) return std::ldexp(mantissa(random), -140);  // denormal
  std::uniform_int_distribution<int> exponent(k < 7 ? -4 : -60, k < 7 ? 2 : 40);
  return std::ldexp(mantissa(random), exponent(random));
}

inline void fill(BucketProblem<float>& problem, bool special) {
  std::mt19937 random(3);
  const float inf = std::numeric_limits<float>::infinity();
  const std::array<float, 3> specials = {std::nanf(""), inf, -inf};
  const auto value = [&] {
    const bool chosen = special && random() % 16 == 0;
    return chosen ? specials[random() % 3] : any_size(random);
  };
  for (auto* array : {&problem.x, &problem.received, &problem.state0, &problem.state2})
    for (float& element : *array) element = value();
  for (float& element : problem.state1)
    element = std::abs(value());  // no second moment is negative
  for (auto& grad : problem.grads)
    for (float& element : grad) element = value();
}

/// Of many elements.
struct Worst {
  double share = 0;  // of the bound
  std::int64_t compared = 0, beyond = 0, not_finite = 0;
};

// Where float64 has no number float32 has none; where it has one too large for float32, infinity
// will do.
inline void compare(float actual, const Sum& expected, int roundings, Worst& worst) {
  if (!std::isfinite(expected.value)) {
    ++worst.not_finite;
    EXPECT_FALSE(std::isfinite(actual)) << expected.value;
    return;
  }
  if (expected.terms > std::numeric_limits<float>::max() / 4) return;
  ++worst.compared;
  const double bound = roundings * kUnit * expected.terms + expected.slack + kTiny;
  const double error = std::abs(actual - expected.value);
  worst.share = std::max(worst.share, error / bound);
  if (!(error <= bound)) ++worst.beyond;  // nor does NaN
}

/// One step of `update` against `formula`.
inline Worst compare_step(const BucketUpdate& update, const Formula& formula, int roundings,
                          const Setting& s, bool special) {
  BucketProblem<float> problem({1, 7, 33, 4099});  // at offsets that nothing is aligned to
  fill(problem, special);
  for (BucketSlice& slice : problem.slices) {
    slice.weight_decay = s.weight_decay;
    slice.updates = s.updates;
  }
  const BucketProblem<float> before = problem;
  problem.apply(update, s.other == 0 ? Mixing{} : mixing_of(s.self, s.other), s.lr, s.grad_scale);
  Worst worst;
  for (std::size_t i = 0; i < before.slices.size(); ++i) {
    for (std::int64_t e = 0; e < before.slices[i].numel; ++e) {
      const auto at = static_cast<std::size_t>(before.slices[i].offset + e);
      Sum z = input(before.x[at]);
      if (s.other != 0) z = s.self * z + s.other * input(before.received[at]);
      const Sum g = s.grad_scale * input(before.grads[i][static_cast<std::size_t>(e)]);
      const After expected = formula(
          {z, g, {input(before.state0[at]), input(before.state1[at]), input(before.state2[at])}},
          s);
      compare(problem.x[at], expected.x, roundings, worst);
      const std::array after = {problem.state0[at], problem.state1[at], problem.state2[at]};
      for (std::size_t n = 0; n < expected.states.size(); ++n)
        compare(after[n], expected.states[n], roundings, worst);
    }
  }
  return worst;
}

/// The same for many settings; returns the worst of all.
inline Worst compare_steps(const BucketUpdate& update, const Formula& formula, int roundings) {
  Worst worst;
  for (const auto& [self, other] : {std::pair(1.0, 0.0), {0.5, 0.5}, {0.7, 0.3}, {0.28, 0.36}}) {
    for (const double lr : {1e-3, 0.05}) {
      for (const double weight_decay : {0.0, 0.1}) {
        for (const double grad_scale : {1.0, 0.37}) {
          for (const std::int64_t updates : {1, 2, 3, 1000}) {
            const Setting setting{self, other, lr, weight_decay, grad_scale, updates};
            const Worst one = compare_step(update, formula, roundings, setting, false);
            EXPECT_GT(one.compared, 4000);
            EXPECT_GT(compare_step(update, formula, roundings, setting, true).not_finite, 100);
            worst.share = std::max(worst.share, one.share);
            worst.beyond += one.beyond;
          }
        }
      }
    }
  }
  return worst;
}

/// Expects that every result is within the rule's bound, and that the bound is no wider than errors
/// that do occur: with a tenth of it some result would be beyond.
inline void expect_within_bound(const BucketUpdate& update, const Formula& formula, int roundings) {
  const Worst worst = compare_steps(update, formula, roundings);
  EXPECT_EQ(worst.beyond, 0) << "up to " << worst.share << " of the bound";
  EXPECT_GT(worst.share, 0.1);
  ::testing::Test::RecordProperty("worst_share_of_the_bound", std::to_string(worst.share));
}

}  // namespace decent::testing
