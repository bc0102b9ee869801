// One step of every optimizer against torch's own kernels in float64 (at::_fused_sgd_,
// _fused_adam_, _fused_adamw_), and many steps of them.

#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "../support/bucket_problem.h"

namespace decent {
namespace {

using testing::BucketProblem;
using testing::mixing_of;

enum class Kind { sgd, adam, adamw };

struct Settings {
  Kind kind = Kind::sgd;
  double momentum = 0;
  bool nesterov = false;
  double eps = 1e-8;
  double beta1 = 0.9;
  double beta2 = 0.999;
};

std::unique_ptr<BucketUpdate> make(const Settings& s) {
  if (s.kind == Kind::sgd)
    return make_update("sgd", {{"momentum", s.momentum}, {"nesterov", s.nesterov}});
  return make_update(s.kind == Kind::adamw ? "adamw" : "adam",
                     {{"betas", std::array{s.beta1, s.beta2}}, {"eps", s.eps}});
}

// What one parameter is before and after a step, in float64.
struct Reference {
  at::Tensor z, g, b0, b1;  // b0, b1: the states

  void step(const Settings& s, const BucketSlice& slice, double lr) {
    lr *= slice.lr_scale;
    std::vector<at::Tensor> x = {z}, grads = {g}, first = {b0}, second = {b1};
    if (s.kind == Kind::sgd) {
      if (s.momentum == 0) first.clear();  // torch keeps no buffer then
      at::_fused_sgd_(x, grads, first, slice.weight_decay, s.momentum, lr, /*dampening=*/0,
                      s.nesterov, /*maximize=*/false, /*is_first_step=*/false);
      return;
    }
    const std::vector<at::Tensor> steps = {at::full({}, static_cast<double>(slice.updates))};
    const auto call = [&](const auto& fused) {
      fused(x, grads, first, second, std::vector<at::Tensor>(), steps, lr, s.beta1, s.beta2,
            slice.weight_decay, s.eps, /*amsgrad=*/false, /*maximize=*/false, std::nullopt,
            std::nullopt);
    };
    if (s.kind == Kind::adam) {
      call([](auto&&... a) { at::_fused_adam_(a...); });
    } else {
      call([](auto&&... a) { at::_fused_adamw_(a...); });
    }
  }
};

template <typename T>
at::Tensor as_double(const T* begin, std::int64_t n) {
  return at::tensor(std::vector<double>(begin, begin + n), at::kDouble);
}

// The sum of the absolute terms that make up the new x, m or b, and v of one element: what rounding
// is relative to.
struct Terms {
  double x, first, second;
};

Terms terms_of(const Settings& s, const BucketSlice& slice, double lr, const Mixing& mixing,
               double x, double r, double g, double b0, double b1) {
  lr *= slice.lr_scale;
  const double z = std::abs(mixing.self * x) + std::abs(mixing.other * r);
  const double decay = slice.weight_decay * z;
  g = std::abs(g), b0 = std::abs(b0);
  if (s.kind == Kind::sgd) {
    const double first = g + decay + s.momentum * b0;
    return {z + lr * (g + decay + (1 + s.momentum) * first), first, 0};
  }
  const bool coupled = s.kind == Kind::adam;
  const double grad = g + (coupled ? decay : 0);
  const double first = b0 + (1 - s.beta1) * (grad + b0);
  const double second = s.beta2 * b1 + (1 - s.beta2) * grad * grad;
  // The denominator without the gradient is the smallest it can be; each rounding of v moves the
  // update by half.
  const auto n = static_cast<double>(slice.updates);
  const double least = std::sqrt(s.beta2 * b1) / std::sqrt(1 - std::pow(s.beta2, n)) + s.eps;
  const double spread = std::sqrt(second / std::max(s.beta2 * b1, 1e-300));
  const double update = lr / (1 - std::pow(s.beta1, n)) * first / least * spread;
  return {z + lr * slice.weight_decay * z + update, first, second};
}

template <typename T>
class AgainstTorch : public ::testing::Test {
 protected:
  // The longest way from an input to the result of Adam: rounding of a coefficient, mixing (2),
  // decay (2), moment (3), square root and two divisions, step (2), each at most 2^-24 (2^-53) of
  // the terms, and as much again for torch's.
  static constexpr double kRounding = 16 * std::numeric_limits<T>::epsilon() / 2;

  static void compare(const Settings& s, const Mixing& mixing) {
    BucketProblem<T> problem({1, 7, 31, 1000, 40000});
    for (std::size_t i = 0; i < problem.slices.size(); ++i) {
      problem.slices[i].weight_decay = 0.1 * static_cast<double>(i % 3);
      problem.slices[i].lr_scale = i == 1 || i == 4 ? 0.25 : 1.0;
      problem.slices[i].updates = std::vector<std::int64_t>{1, 2, 3, 100, 7}[i];
    }
    const double lr = 0.3;  // large, so that the update counts as much as x
    const BucketProblem<T> before = problem;
    problem.apply(*make(s), mixing, lr);
    for (std::size_t i = 0; i < problem.slices.size(); ++i) {
      compare_slice(s, mixing, lr, before, problem, i);
    }
  }

 private:
  static void compare_slice(const Settings& s, const Mixing& mixing, double lr,
                            const BucketProblem<T>& before, const BucketProblem<T>& after,
                            std::size_t number) {
    const BucketSlice& slice = before.slices[number];
    const auto at = static_cast<std::size_t>(slice.offset);
    const auto n = static_cast<std::size_t>(slice.numel);
    const T* g = before.grads[number].data();
    Reference torch{as_double(&before.x[at], slice.numel), as_double(g, slice.numel),
                    as_double(&before.state0[at], slice.numel),
                    as_double(&before.state1[at], slice.numel)};
    if (mixing.received != nullptr) {
      torch.z.mul_(mixing.self).add_(as_double(&before.received[at], slice.numel), mixing.other);
    }
    torch.step(s, slice, lr);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t j = at + i;
      const double r = mixing.received ? static_cast<double>(before.received[j]) : 0.0;
      const Terms terms =
          terms_of(s, slice, lr, mixing, before.x[j], r, g[i], before.state0[j], before.state1[j]);
      const auto value = [&](const at::Tensor& t) { return t.const_data_ptr<double>()[i]; };
      ASSERT_NEAR(after.x[j], value(torch.z), kRounding * terms.x) << "slice " << number;
      if (s.kind == Kind::sgd && s.momentum == 0) continue;
      ASSERT_NEAR(after.state0[j], value(torch.b0), kRounding * terms.first) << "slice " << number;
      if (s.kind == Kind::sgd) continue;
      ASSERT_NEAR(after.state1[j], value(torch.b1), kRounding * terms.second) << "slice " << number;
    }
  }
};
using ElementTypes = ::testing::Types<float, double>;
TYPED_TEST_SUITE(AgainstTorch, ElementTypes);

const std::vector<Settings>& all_settings() {
  static const std::vector<Settings> list = {
      {.kind = Kind::sgd},
      {.kind = Kind::sgd, .momentum = 0.9},
      {.kind = Kind::sgd, .momentum = 0.9, .nesterov = true},
      {.kind = Kind::adam},
      {.kind = Kind::adam, .eps = 0.1, .beta1 = 0.5, .beta2 = 0.75},
      {.kind = Kind::adamw},
      {.kind = Kind::adamw, .eps = 0.1, .beta1 = 0.5, .beta2 = 0.75},
  };
  return list;
}

TYPED_TEST(AgainstTorch, OneStepWithoutMixing) {
  for (const Settings& settings : all_settings()) this->compare(settings, {});
}

TYPED_TEST(AgainstTorch, OneStepAfterMixing) {
  for (const Settings& settings : all_settings()) {
    for (const Mixing& mixing : {mixing_of(0.5, 0.5), mixing_of(0.7, 0.1), mixing_of(1.0, 0.0)}) {
      this->compare(settings, mixing);
    }
  }
}

// From zero state, as a run has it: torch's first step, bias corrections and momentum in their
// course.
TEST(AgainstTorchForLong, ThirtyStepsInFloat64) {
  for (const Settings& settings : all_settings()) {
    BucketProblem<double> problem({50});
    BucketSlice& slice = problem.slices[0];
    const auto at = static_cast<std::size_t>(slice.offset);
    problem.state0.assign(problem.x.size(), 0);
    problem.state1.assign(problem.x.size(), 0);
    slice.weight_decay = 0.01;
    Reference torch{as_double(&problem.x[at], 50),
                    {},
                    at::full({50}, 0.0, at::kDouble),
                    at::full({50}, 0.0, at::kDouble)};
    for (std::int64_t t = 1; t <= 30; ++t) {
      for (std::size_t i = 0; i < 50; ++i) {
        problem.grads[0][i] = std::sin(static_cast<double>(t) * static_cast<double>(i + 1));
      }
      slice.updates = t;
      const double lr = 0.1 / static_cast<double>(t);
      problem.apply(*make(settings), {}, lr);
      torch.g = as_double(problem.grads[0].data(), 50);
      torch.step(settings, slice, lr);
    }
    for (std::size_t i = 0; i < 50; ++i) {
      // 30 steps of some 20 roundings of 1.1e-16 each of terms below 10.
      EXPECT_NEAR(problem.x[at + i], torch.z.const_data_ptr<double>()[i], 1e-12);
    }
  }
}

}  // namespace
}  // namespace decent
