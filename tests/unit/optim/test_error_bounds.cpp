// Every update is within the bound that its rule states; error_bounds.h says how that is checked.

#include "decent/optim/rules/all.h"
#include "error_bounds.h"

namespace decent {
namespace {

using testing::After;
using testing::Before;
using testing::compare_steps;
using testing::expect_within_bound;
using testing::Formula;
using testing::Setting;
using testing::Sum;

Formula sgd(double momentum, bool nesterov) {
  return [=](const Before& at, const Setting& s) -> After {
    const Sum g = at.g + s.weight_decay * at.x;
    const Sum b = momentum * at.states[0] + g;
    return {at.x + (-s.lr) * (nesterov ? g + momentum * b : b), {b}};
  };
}

struct Adam {
  bool decoupled;
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;

  Sum gradient(const Before& at, const Setting& s) const {
    return at.g + (decoupled ? 0 : s.weight_decay) * at.x;
  }
  Sum kept(const Before& at, const Setting& s) const {
    return (decoupled ? 1 - s.lr * s.weight_decay : 1) * at.x;
  }
  Sum mean(const Before& at, const Sum& g) const { return beta1 * at.states[0] + (1 - beta1) * g; }
  Sum square(const Before& at, const Sum& g) const {
    return beta2 * at.states[1] + (1 - beta2) * (g * g);
  }
  Sum denominator(const Sum& v, double n) const {
    return (1 / std::sqrt(1 - std::pow(beta2, n))) * sqrt(v) + testing::input(eps);
  }
  // From both moments at the n-th of the updates that count.
  Sum next_x(const Before& at, const Sum& m, const Sum& v, double n, const Setting& s) const {
    const double step = s.lr / (1 - std::pow(beta1, n));
    return kept(at, s) + (-step) * m / denominator(v, n);
  }
  After operator()(const Before& at, const Setting& s) const {
    const Sum g = gradient(at, s), m = mean(at, g), v = square(at, g);
    return {next_x(at, m, v, static_cast<double>(s.updates), s), {m, v}};
  }
};

struct AccumAdam {
  Adam adam;
  std::int64_t accum_iter;

  After operator()(const Before& at, const Setting& s) const {
    const auto& [m, v, accumulated] = at.states;
    const double rest1 = 1 - adam.beta1, rest2 = 1 - adam.beta2;
    const Sum g = adam.gradient(at, s);
    const Sum a = accumulated + (1 / static_cast<double>(accum_iter)) * g;
    const double n = std::ceil(static_cast<double>(s.updates) / static_cast<double>(accum_iter));
    const Sum x = adam.next_x(at, m + rest1 * g, v + rest2 * (g * g), n, s);
    if (s.updates % accum_iter != 0) return {x, {m, v, a}};
    return {x, {adam.beta1 * (m + rest1 * a), adam.beta2 * (v + rest2 * (a * a)), Sum{}}};
  }
};

struct NAdam {
  Adam adam;
  double momentum_decay = 4e-3;

  double momentum(double i) const {
    return adam.beta1 * (1 - std::pow(0.96, i * momentum_decay) / 2);
  }
  After operator()(const Before& at, const Setting& s) const {
    const Sum g = adam.gradient(at, s), m = adam.mean(at, g), v = adam.square(at, g);
    double product = 1;
    for (std::int64_t i = 1; i <= s.updates; ++i) product *= momentum(static_cast<double>(i));
    const auto n = static_cast<double>(s.updates);
    const double now = momentum(n), next = momentum(n + 1);
    const Sum step =
        (-s.lr * (1 - now) / (1 - product)) * g + (-s.lr * next / (1 - product * next)) * m;
    return {adam.kept(at, s) + step / adam.denominator(v, n), {m, v}};
  }
};

struct RAdam {
  Adam adam;

  After operator()(const Before& at, const Setting& s) const {
    const Sum g = adam.gradient(at, s), m = adam.mean(at, g), v = adam.square(at, g);
    const auto n = static_cast<double>(s.updates);
    const double rest = std::pow(adam.beta2, n), most = 2 / (1 - adam.beta2) - 1;
    const double length = most - 2 * n * rest / (1 - rest);
    const double step = s.lr / (1 - std::pow(adam.beta1, n));
    if (length <= 5) return {adam.kept(at, s) + (-step) * m, {m, v}};
    const double r =
        std::sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length));
    const double factor = step * r * std::sqrt(1 - rest);
    return {adam.kept(at, s) + (-factor) * m / (sqrt(v) + testing::input(adam.eps)), {m, v}};
  }
};

// Its only state is states[1]: see BucketProblem.
Formula adagrad(double lr_decay, double initial, double eps) {
  return [=](const Before& at, const Setting& s) -> After {
    const Sum g = at.g + s.weight_decay * at.x;
    const Sum v = at.states[1] + g * g;
    const double lr = s.lr / (1 + static_cast<double>(s.updates - 1) * lr_decay);
    const Sum denominator = sqrt(v + testing::input(initial)) + testing::input(eps);
    return {at.x + (-lr) * g / denominator, {at.states[0], v}};
  };
}

TEST(ErrorBounds, Sgd) {
  const int n = rules::Sgd::kRoundings;
  expect_within_bound(*make_update("sgd"), sgd(0, false), n);
  expect_within_bound(*make_update("sgd", {{"momentum", 0.9}}), sgd(0.9, false), n);
  expect_within_bound(*make_update("sgd", {{"momentum", 0.9}, {"nesterov", true}}), sgd(0.9, true),
                      n);
}

TEST(ErrorBounds, Adam) {
  const int n = rules::Adam::kRoundings;
  expect_within_bound(*make_update("adam"), Adam{.decoupled = false}, n);
  expect_within_bound(*make_update("adam", {{"betas", std::array{0.8, 0.99}}, {"eps", 1e-5}}),
                      Adam{.decoupled = false, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-5}, n);
  expect_within_bound(*make_update("adamw"), Adam{.decoupled = true}, n);
}

TEST(ErrorBounds, AccumAdam) {
  const int n = rules::AccumAdam::kRoundings;
  expect_within_bound(*make_update("accum_adam", {{"accum_iter", 1}}), AccumAdam{{false}, 1}, n);
  expect_within_bound(*make_update("accum_adam", {{"accum_iter", 3}}), AccumAdam{{false}, 3}, n);
  expect_within_bound(*make_update("accum_adamw", {{"accum_iter", 2}}), AccumAdam{{true}, 2}, n);
}

TEST(ErrorBounds, NAdam) {
  const int n = rules::NAdam::kRoundings;
  expect_within_bound(*make_update("nadam"), NAdam{{.decoupled = false}}, n);
  expect_within_bound(
      *make_update("nadamw",
                   {{"betas", std::array{0.8, 0.99}}, {"eps", 1e-5}, {"momentum_decay", 0.5}}),
      NAdam{{.decoupled = true, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-5}, 0.5}, n);
}

// Of the numbers of updates that are tried, it divides at 1000.
TEST(ErrorBounds, RAdam) {
  const int n = rules::RAdam::kRoundings;
  expect_within_bound(*make_update("radam"), RAdam{{.decoupled = false}}, n);
  expect_within_bound(*make_update("radamw", {{"betas", std::array{0.8, 0.99}}, {"eps", 1e-5}}),
                      RAdam{{.decoupled = true, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-5}}, n);
}

TEST(ErrorBounds, Adagrad) {
  const int n = rules::Adagrad::kRoundings;
  expect_within_bound(*make_update("adagrad"), adagrad(0, 0, 1e-10), n);
  expect_within_bound(
      *make_update("adagrad",
                   {{"lr_decay", 0.1}, {"initial_accumulator_value", 0.5}, {"eps", 1e-5}}),
      adagrad(0.1, 0.5, 1e-5), n);
}

// Its direction is states[0], which the test gives.
TEST(ErrorBounds, Adafactor) {
  const Formula formula = [](const Before& at, const Setting& s) -> After {
    return {(1 - s.lr * s.weight_decay) * at.x + (-1.0) * at.states[0], {at.states[0]}};
  };
  expect_within_bound(*make_update("adafactor"), formula, rules::Adafactor::kRoundings);
}

// Mistakes of the kind that the bound is there for are noticed: 1 - beta2 worked out in float32,
// which is off by up to 2^-25 / 0.001 of it, and a momentum that is off by 2^-18.
TEST(ErrorBounds, NoticeACoefficientThatIsRoundedTooEarly) {
  const int n = rules::Adam::kRoundings;
  const double rounded = static_cast<float>(0.999);
  EXPECT_GT(
      compare_steps(*make_update("adamw", {{"betas", std::array{0.9, rounded}}}), Adam{true}, n)
          .beyond,
      1000);
  EXPECT_GT(compare_steps(*make_update("sgd", {{"momentum", 0.9 * (1 + 0x1p-18)}}), sgd(0.9, false),
                          rules::Sgd::kRoundings)
                .beyond,
            1000);
}

}  // namespace
}  // namespace decent
