// Newton-Schulz iterations against what they do to singular values, and the step of muon's
// matrices.

#include "decent/parallel/matrix_work.h"

#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_svd.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <limits>

namespace decent {
namespace {

const at::TensorOptions kFloat64 = at::TensorOptions().dtype(at::kDouble);

// U f(S / |S|) V^T, where f is the polynomial of the iterations.
at::Tensor by_singular_values(const at::Tensor& matrix, int iterations) {
  const auto [u, values, v] = at::linalg_svd(matrix, /*full_matrices=*/false);
  at::Tensor s = values.div(values.norm());
  for (int i = 0; i < iterations; ++i)
    s = s.mul(3.4445).add(s.pow(3), -4.7750).add(s.pow(5), 2.0315);
  return u.mul(s).mm(v);
}

TEST(NewtonSchulz, ActsOnSingularValues) {
  for (const auto& [rows, cols] : {std::pair{7, 7}, {12, 5}, {5, 12}, {1, 9}, {9, 1}, {1, 1}}) {
    const at::Tensor matrix = at::randn({rows, cols}, kFloat64);
    for (const int iterations : {1, 5}) {
      // Each iteration multiplies an error by at most 3.4445: 485 roundings of doubles after five.
      EXPECT_TRUE(at::allclose(newton_schulz(matrix, iterations),
                               by_singular_values(matrix, iterations), /*rtol=*/0, /*atol=*/1e-11))
          << rows << " x " << cols;
    }
  }
}

TEST(NewtonSchulz, LeavesZeroAsItIs) {
  EXPECT_TRUE(at::equal(newton_schulz(at::zeros({3, 4}), 5), at::zeros({3, 4})));
}

struct Step {
  at::Tensor grad, momentum, direction;

  void run(bool nesterov, bool by_columns, double scale = 1, const double* device_scale = nullptr) {
    BucketStep step;
    step.scalar = Scalar::float64;
    step.grad_scale = scale;
    step.device_scale = device_scale;
    const Matrix matrix{grad.size(0), grad.size(1), by_columns};
    matrix_work(at::kCPU)(step, {.momentum = 0.75, .nesterov = nesterov, .iterations = 5},
                          {.matrix = matrix,
                           .grad = grad.data_ptr(),
                           .momentum = momentum.data_ptr(),
                           .direction = direction.data_ptr()});
  }
};

Step step_of(const at::Tensor& grad) {
  return {grad, at::randn(grad.sizes(), kFloat64), at::zeros_like(grad)};
}

TEST(MatrixWork, StepsAlongTheMomentum) {
  for (const bool nesterov : {false, true}) {
    Step step = step_of(at::randn({4, 6}, kFloat64));
    const at::Tensor momentum = step.momentum.mul(0.75).add(step.grad, 0.25 * 2);
    step.run(nesterov, /*by_columns=*/false, /*scale=*/2);
    EXPECT_TRUE(at::allclose(step.momentum, momentum, 0, 1e-14));  // some roundings of doubles
    const at::Tensor along = nesterov ? momentum.mul(0.75).add(step.grad, 0.25 * 2) : momentum;
    EXPECT_TRUE(at::allclose(step.direction, by_singular_values(along, 5), 0, 1e-11));
  }
}

// In memory [cols, rows].
TEST(MatrixWork, TakesMatricesByColumns) {
  Step by_rows = step_of(at::randn({4, 6}, kFloat64));
  Step by_columns{by_rows.grad.t().contiguous().view({4, 6}),
                  by_rows.momentum.t().contiguous().view({4, 6}), at::zeros({4, 6}, kFloat64)};
  by_rows.run(true, false);
  by_columns.run(true, true);
  EXPECT_TRUE(at::allclose(by_columns.direction.view({6, 4}).t(), by_rows.direction, 0, 1e-11));
}

TEST(MatrixWork, ChangesNoMomentumIfTheScaleIsNotANumber) {
  constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
  Step step = step_of(at::randn({4, 6}, kFloat64));
  const at::Tensor before = step.momentum.clone();
  step.run(true, false, 1, &kNothing);
  EXPECT_TRUE(at::equal(step.momentum, before));
}

}  // namespace
}  // namespace decent
