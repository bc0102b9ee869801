#include "decent/parallel/matrix_work.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/where.h>

#include <cmath>
#include <limits>

namespace decent {
namespace {

constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
constexpr double kEps = 1e-7;

at::Tensor view(const void* data, const Matrix& matrix, const at::TensorOptions& options) {
  const auto rows = matrix.by_columns ? matrix.cols : matrix.rows;
  const auto cols = matrix.by_columns ? matrix.rows : matrix.cols;
  return at::from_blob(const_cast<void*>(data), {rows, cols}, options);
}

// The gradient as a step scales it, and whether the step changes nothing; undefined if it does.
struct ScaledGradient {
  at::Tensor values;
  at::Tensor skips = {};

  void set(const at::Tensor& state, const at::Tensor& next) const {
    state.copy_(skips.defined() ? at::where(skips, state, next) : next);
  }
};

ScaledGradient scaled(const at::Tensor& grad, const BucketStep& step) {
  ScaledGradient scaled{grad};
  if (step.grad_scale != 1) scaled.values = grad.mul(step.grad_scale);
  if (step.device_scale == nullptr) return scaled;
  const at::Tensor scale =
      at::from_blob(const_cast<double*>(step.device_scale), {}, grad.options().dtype(at::kDouble));
  scaled.skips = at::isnan(scale);
  scaled.values = scaled.values.mul(scale.to(grad.scalar_type()));
  return scaled;
}

at::Tensor root_mean_square(const at::Tensor& x) {
  return at::linalg_vector_norm(x).div(std::sqrt(static_cast<double>(x.numel())));
}

at::Tensor mean_square(const at::Tensor& x, std::int64_t dim) {
  return at::linalg_vector_norm(x, 2, {dim}, /*keepdim=*/true).square().div(x.size(dim));
}

// The estimate of the squared gradient, after its factors have taken in this one.
at::Tensor variance_of(const ScaledGradient& g, const FactoredStep& how, double eps1,
                       const NamedTensors& factors) {
  const auto moved = [&](std::size_t i, const at::Tensor& towards) {
    const at::Tensor next = factors[i].second.lerp(towards, how.share);
    g.set(factors[i].second, next);
    return next;
  };
  if (factors.size() == 1) return moved(0, g.values.square());
  const at::Tensor rows = moved(0, mean_square(g.values, -1));
  const at::Tensor cols = moved(1, mean_square(g.values, -2));
  return rows.mul(cols).div(rows.mean({-2}, /*keepdim=*/true).clamp_min(eps1));
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
    const ScaledGradient g = scaled(view(of.grad, of.matrix, options), step);
    const at::Tensor momentum = view(of.momentum, of.matrix, options);
    const at::Tensor next = momentum.lerp(g.values, 1 - how.momentum);
    const at::Tensor towards = how.nesterov ? g.values.lerp(next, how.momentum) : next;
    view(of.direction, of.matrix, options).copy_(newton_schulz(towards, how.iterations));
    g.set(momentum, next);
  };
}

std::vector<std::pair<std::string, std::vector<std::int64_t>>> factor_extents(
    at::IntArrayRef sizes) {
  std::vector<std::int64_t> rows = sizes.vec(), cols = sizes.vec();
  if (sizes.size() < 2) return {{"variance", sizes.vec()}};
  rows.back() = 1;
  cols[cols.size() - 2] = 1;
  return {{"row_var", rows}, {"col_var", cols}};
}

void take_factored_step(const BucketStep& step, const FactoredStep& how,
                        const FactoredTensors& of) {
  const at::NoGradGuard no_grad;
  const double epsilon = of.x.scalar_type() == at::kFloat ? std::numeric_limits<float>::epsilon()
                                                          : std::numeric_limits<double>::epsilon();
  const double eps1 = how.eps1.value_or(epsilon);
  const ScaledGradient g = scaled(of.grad, step);
  const at::Tensor u =
      variance_of(g, how, eps1, of.factors).clamp_min(eps1 * eps1).rsqrt().mul(g.values);
  const at::Tensor alpha = root_mean_square(of.x).clamp_min(how.eps2).mul(how.rho);
  of.direction.copy_(u.mul(alpha.div(root_mean_square(u).div(how.d).clamp_min(1))));
}

}  // namespace decent
