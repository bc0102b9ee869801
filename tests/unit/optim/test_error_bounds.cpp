// Every update in float32 against the same formula in float64, element by element: the error is at
// most 4 * 2^-24 of the sum of the absolute values of all terms, expanded to the inputs, plus what
// a few of the smallest denormals, 2^-149, in a state can move. For values of all sizes, NaN and
// infinities. (torch's own order of operations exceeds it: 7.2 * 2^-24 was seen.)

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "bucket_problem.h"

namespace decent {
namespace {

using testing::BucketProblem;

constexpr double kUnit = 0x1p-24;
constexpr double kTiny = 4 * 0x1p-149;

struct Setting {
  double self, other;  // mixing
  double lr, weight_decay, grad_scale;
  std::int64_t updates;
};

/// A value and the sum of the absolute values of its terms.
struct Sum {
  double value = 0;
  double terms = 0;
  double slack = 0;  // what denormals may move besides

  double bound() const { return 4 * kUnit * terms + slack + kTiny; }
};

Sum operator+(Sum a, Sum b) { return {a.value + b.value, a.terms + b.terms, a.slack + b.slack}; }
Sum operator*(double c, Sum a) {
  return {c * a.value, std::abs(c) * a.terms, std::abs(c) * a.slack};
}
Sum input(double value) { return {value, std::abs(value)}; }
Sum square(Sum a) {
  return {a.value * a.value, a.terms * a.terms, 2 * std::abs(a.value) * a.slack};
}

// m / (sqrt(v) / correction + eps): the terms of m over the denominator.
Sum quotient(const Sum& m, const Sum& v, double correction, double eps) {
  const double denominator = std::sqrt(v.value) / correction + eps;
  const double size = std::abs(m.value) / denominator;
  // How far the root moves where v moves by what denormals may.
  const double moved = v.slack + kTiny;
  const double low = std::max(v.value - moved, 0.0);
  const double root_moves = (std::sqrt(v.value + moved) - std::sqrt(low)) / correction;
  return {m.value / denominator, m.terms / denominator,
          (m.slack + kTiny) / denominator + (size > 0 ? size * root_moves / denominator : 0)};
}

struct Element {
  Sum x;
  std::vector<Sum> states;
};

Sum mixed(double p, double r, const Setting& s) {
  return s.other == 0 ? input(p) : s.self * input(p) + s.other * input(r);
}

struct Sgd {
  SgdOptions options;
  std::unique_ptr<BucketUpdate> make() const { return make_sgd(options); }

  Element expected(double p, double r, double g, std::array<double, 3> states,
                   const Setting& s) const {
    const Sum z = mixed(p, r, s);
    const Sum grad = s.grad_scale * input(g) + s.weight_decay * z;
    const Sum b = options.momentum * input(states[0]) + grad;
    const Sum direction = options.nesterov ? grad + options.momentum * b : b;
    return {z + (-s.lr) * direction, {b}};
  }
};

struct Adam {
  AdamOptions options;
  std::unique_ptr<BucketUpdate> make() const { return make_adam(options); }

  Element expected(double p, double r, double g, std::array<double, 3> states,
                   const Setting& s) const {
    const bool decoupled = options.decoupled_weight_decay;
    Sum x = mixed(p, r, s);
    if (decoupled) x = x + (-s.lr * s.weight_decay) * x;
    Sum grad = s.grad_scale * input(g);
    if (!decoupled && s.weight_decay != 0) grad = grad + s.weight_decay * x;
    const Sum m = options.beta1 * input(states[0]) + (1 - options.beta1) * grad;
    const Sum v = options.beta2 * input(states[1]) + (1 - options.beta2) * square(grad);
    const auto t = static_cast<double>(s.updates);
    const double step = s.lr / (1 - std::pow(options.beta1, t));
    const double correction = std::sqrt(1 - std::pow(options.beta2, t));
    return {x + (-step) * quotient(m, v, correction, options.eps), {m, v}};
  }
};

struct AccumAdam {
  AccumAdamOptions options;
  std::unique_ptr<BucketUpdate> make() const { return make_accum_adam(options); }

  Element expected(double p, double r, double g, std::array<double, 3> states,
                   const Setting& s) const {
    const AdamOptions& adam = options.adam;
    const auto k = static_cast<double>(options.accum_iter);
    Sum x = mixed(p, r, s);
    if (adam.decoupled_weight_decay) x = x + (-s.lr * s.weight_decay) * x;
    Sum grad = s.grad_scale * input(g);
    if (!adam.decoupled_weight_decay && s.weight_decay != 0) grad = grad + s.weight_decay * x;
    const Sum a = input(states[2]) + (1 / k) * grad;
    const Sum first = input(states[0]) + (1 - adam.beta1) * grad;
    const Sum second = input(states[1]) + (1 - adam.beta2) * square(grad);
    const double n = std::ceil(static_cast<double>(s.updates) / k);
    const double step = s.lr / (1 - std::pow(adam.beta1, n));
    const double correction = std::sqrt(1 - std::pow(adam.beta2, n));
    x = x + (-step) * quotient(first, second, correction, adam.eps);
    if (s.updates % options.accum_iter != 0) return {x, {input(states[0]), input(states[1]), a}};
    return {x,
            {adam.beta1 * (input(states[0]) + (1 - adam.beta1) * a),
             adam.beta2 * (input(states[1]) + (1 - adam.beta2) * square(a)), Sum{}}};
  }
};

// Sizes from 2^-149 to 2^60, zeros.
float any_size(std::mt19937& random) {
  std::uniform_int_distribution<int> kind(0, 9);
  std::uniform_real_distribution<float> mantissa(-1, 1);
  const int k = kind(random);
  if (k == 0) return 0;
  if (k == 1) return std::ldexp(mantissa(random), -140);  // denormal
  std::uniform_int_distribution<int> exponent(k < 7 ? -4 : -60, k < 7 ? 2 : 40);
  return std::ldexp(mantissa(random), exponent(random));
}

void fill(BucketProblem<float>& problem, bool special) {
  std::mt19937 random(3);
  const float inf = std::numeric_limits<float>::infinity();
  const std::array<float, 3> specials = {std::nanf(""), inf, -inf};
  const auto value = [&] {
    const bool chosen = special && random() % 16 == 0;
    return chosen ? specials[random() % 3] : any_size(random);
  };
  for (auto* array : {&problem.x, &problem.received, &problem.state0, &problem.state2})
    for (float& element : *array) element = value();
  for (float& element : problem.state1) element = std::abs(value());
  for (auto& grad : problem.grads)
    for (float& element : grad) element = value();
}

struct Worst {
  double share = 0;  // of the bound
  std::int64_t compared = 0, not_finite = 0;
};

// Where float64 has no number float32 has none; where it has one too large for float32, infinity
// will do.
void compare(float actual, const Sum& expected, Worst& worst) {
  if (!std::isfinite(expected.value)) {
    ++worst.not_finite;
    EXPECT_FALSE(std::isfinite(actual)) << expected.value;
    return;
  }
  if (expected.terms > std::numeric_limits<float>::max() / 4) return;
  ++worst.compared;
  const double error = std::abs(actual - expected.value);
  worst.share = std::max(worst.share, error / expected.bound());
  EXPECT_LE(error, expected.bound()) << actual << " for " << expected.value;
}

template <typename Update>
Worst check(const Update& reference, const Setting& s, bool special) {
  BucketProblem<float> problem({1, 7, 33, 4099});  // at offsets that nothing is aligned to
  fill(problem, special);
  for (BucketSlice& slice : problem.slices) {
    slice.weight_decay = s.weight_decay;
    slice.updates = s.updates;
  }
  const BucketProblem<float> before = problem;
  const auto update = reference.make();
  std::vector<void*> states = {problem.state0.data(), problem.state1.data(), problem.state2.data()};
  states.resize(update->state_names().size());
  update->apply({.x = problem.x.data(),
                 .numel = static_cast<std::int64_t>(problem.x.size()),
                 .states = states,
                 .mixing = {s.self, s.other, s.other == 0 ? nullptr : problem.received.data()},
                 .slices = problem.slices,
                 .lr = s.lr,
                 .grad_scale = s.grad_scale});
  Worst worst;
  for (std::size_t i = 0; i < before.slices.size(); ++i) {
    for (std::int64_t e = 0; e < before.slices[i].numel; ++e) {
      const auto at = static_cast<std::size_t>(before.slices[i].offset + e);
      const Element expected = reference.expected(
          before.x[at], before.received[at], before.grads[i][static_cast<std::size_t>(e)],
          {before.state0[at], before.state1[at], before.state2[at]}, s);
      compare(problem.x[at], expected.x, worst);
      const std::array<float, 3> after = {problem.state0[at], problem.state1[at],
                                          problem.state2[at]};
      for (std::size_t n = 0; n < expected.states.size(); ++n)
        compare(after[n], expected.states[n], worst);
      if (::testing::Test::HasFailure()) return worst;
    }
  }
  return worst;
}

template <typename Update>
void check_all(const Update& reference) {
  double share = 0;
  for (const auto& [self, other] : {std::pair(1.0, 0.0), {0.5, 0.5}, {0.7, 0.3}, {0.28, 0.36}}) {
    for (const double lr : {1e-3, 0.05}) {
      for (const double weight_decay : {0.0, 0.1}) {
        for (const double grad_scale : {1.0, 0.37}) {
          for (const std::int64_t updates : {1, 2, 3, 1000}) {
            const Setting setting{self, other, lr, weight_decay, grad_scale, updates};
            const Worst worst = check(reference, setting, false);
            EXPECT_GT(worst.compared, 8000);
            share = std::max(share, worst.share);
            EXPECT_GT(check(reference, setting, true).not_finite, 100);
            if (::testing::Test::HasFailure()) return;
          }
        }
      }
    }
  }
  ::testing::Test::RecordProperty("worst_share_of_the_bound", std::to_string(share));
  EXPECT_GT(share, 0.1);  // the bound is not so wide that nothing could exceed it
}

TEST(ErrorBounds, Sgd) {
  check_all(Sgd{{}});
  check_all(Sgd{{.momentum = 0.9}});
  check_all(Sgd{{.momentum = 0.9, .nesterov = true}});
}

TEST(ErrorBounds, Adam) {
  check_all(Adam{{}});
  check_all(Adam{{.beta1 = 0.8, .beta2 = 0.99, .eps = 1e-5}});
}

TEST(ErrorBounds, AdamW) { check_all(Adam{{.decoupled_weight_decay = true}}); }

TEST(ErrorBounds, AccumAdam) {
  check_all(AccumAdam{{.accum_iter = 1}});
  check_all(AccumAdam{{.accum_iter = 3}});
}

TEST(ErrorBounds, AccumAdamW) {
  check_all(AccumAdam{{.adam = {.decoupled_weight_decay = true}, .accum_iter = 2}});
}

}  // namespace
}  // namespace decent
