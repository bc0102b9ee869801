#pragma once
// Thirty steps in float64 from states that are zero, by an update or by an optimizer of torch:
// weight i begins as cos(i), and its gradient at step t is sin(t (i + 1)).

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <torch/optim/optimizer.h>

#include <cmath>
#include <vector>

#include "../support/bucket_problem.h"

namespace decent::testing {

inline constexpr std::size_t kWeights = 50;
inline constexpr int kSteps = 30;
inline constexpr double kRate = 0.1;

inline std::vector<double> first_weights() {
  std::vector<double> x(kWeights);
  for (std::size_t i = 0; i < kWeights; ++i) x[i] = std::cos(static_cast<double>(i));
  return x;
}

inline std::vector<double> gradient_at(int t) {
  std::vector<double> g(kWeights);
  for (std::size_t i = 0; i < kWeights; ++i) g[i] = std::sin(t * static_cast<double>(i + 1));
  return g;
}

inline std::vector<double> after_thirty_steps(const BucketUpdate& update, double weight_decay) {
  BucketProblem<double> problem({kWeights});
  for (std::vector<double>* state : problem.arrays_of(update)) state->assign(problem.x.size(), 0);
  const auto begin = problem.x.begin() + problem.slices[0].offset;
  const std::vector<double> start = first_weights();
  std::copy(start.begin(), start.end(), begin);
  problem.slices[0].weight_decay = weight_decay;
  for (int t = 1; t <= kSteps; ++t) {
    problem.slices[0].updates = t;
    const std::vector<double> g = gradient_at(t);
    std::copy(g.begin(), g.end(), problem.grads[0].begin());
    problem.apply(update, {}, kRate);
  }
  return {begin, begin + kWeights};
}

/// By torch's `Optimizer`, whose options have the rate.
template <class Optimizer, class TorchOptions>
std::vector<double> after_thirty_steps_of(const TorchOptions& options) {
  const at::Tensor x = at::tensor(first_weights(), at::kDouble).requires_grad_();
  Optimizer optimizer({x}, options);
  for (int t = 1; t <= kSteps; ++t) {
    x.mutable_grad() = at::tensor(gradient_at(t), at::kDouble);
    optimizer.step();
  }
  const double* data = x.const_data_ptr<double>();
  return {data, data + kWeights};
}

/// As many as are expected.
inline void expect_near(const std::vector<double>& weights, const std::vector<double>& expected,
                        double tolerance) {
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(weights[i], expected[i], tolerance) << i;
}

}  // namespace decent::testing
