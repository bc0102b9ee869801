#include "decent/parallel/matrix_work.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/where.h>

namespace decent {
namespace {

constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
constexpr double kEps = 1e-7;

at::Tensor view(const void* data, const Matrix& matrix, const at::TensorOptions& options) {
  const auto rows = matrix.by_columns ? matrix.cols : matrix.rows;
  const auto cols = matrix.by_columns ? matrix.rows : matrix.cols;
  return at::from_blob(const_cast<void*>(data), {rows, cols}, options);
}

}  // namespace

at::Tensor newton_schulz(const at::Tensor& matrix, std::int64_t iterations) {
  const bool is_tall = matrix.size(0) > matrix.size(1);
  at::Tensor x = is_tall ? matrix.t() : matrix;
  if (x.is_cuda()) x = x.to(at::kBFloat16);
  x = x.div(at::linalg_vector_norm(x).clamp_min(kEps));
  for (std::int64_t i = 0; i < iterations; ++i) {
    const at::Tensor gram = x.mm(x.t());
    x = at::addmm(x, at::addmm(gram, gram, gram, kB, kC), x, kA);
  }
  return is_tall ? x.t() : x;
}

MatrixWork matrix_work(const at::Device& device) {
  return [device](const BucketStep& step, const MatrixStep& how, const MatrixArrays& of) {
    const at::NoGradGuard no_grad;
    const auto type = step.scalar == Scalar::float32 ? at::kFloat : at::kDouble;
    const auto options = at::TensorOptions().device(device).dtype(type);
    at::Tensor g = view(of.grad, of.matrix, options);
    if (step.grad_scale != 1) g = g.mul(step.grad_scale);
    at::Tensor skips;
    if (step.device_scale != nullptr) {
      const at::Tensor scale =
          at::from_blob(const_cast<double*>(step.device_scale), {}, options.dtype(at::kDouble));
      skips = at::isnan(scale);
      g = g.mul(scale.to(type));
    }
    at::Tensor momentum = view(of.momentum, of.matrix, options);
    const at::Tensor next = momentum.lerp(g, 1 - how.momentum);
    const at::Tensor towards = how.nesterov ? g.lerp(next, how.momentum) : next;
    view(of.direction, of.matrix, options).copy_(newton_schulz(towards, how.iterations));
    momentum.copy_(skips.defined() ? at::where(skips, momentum, next) : next);
  };
}

}  // namespace decent
