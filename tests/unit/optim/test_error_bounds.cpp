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
  // From both moments at the n-th of the updates that count.
  Sum next_x(const Before& at, const Sum& m, const Sum& v, double n, const Setting& s) const {
    const Sum kept = (decoupled ? 1 - s.lr * s.weight_decay : 1) * at.x;
    const double correction = std::sqrt(1 - std::pow(beta2, n));
    const double step = s.lr / (1 - std::pow(beta1, n));
    return kept + (-step) * m / ((1 / correction) * sqrt(v) + testing::input(eps));
  }
  After operator()(const Before& at, const Setting& s) const {
    const Sum g = gradient(at, s);
    const Sum m = beta1 * at.states[0] + (1 - beta1) * g;
    const Sum v = beta2 * at.states[1] + (1 - beta2) * (g * g);
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
