#include "decent/parallel/gradient_scale.h"

#include <ATen/ops/scalar_tensor.h>

#include <cmath>

#include "decent/core/error.h"
#include "decent/optim/gradient_norm.h"
#include "decent/parallel/device_kernels.h"
#include "decent/parallel/tensor_names.h"

namespace decent {
namespace {

double squares_of(std::span<const BucketSlice> slices, const Bucket& bucket) {
  return sum_of_squares(slices, scalar_of(bucket.x), kernels_of(bucket.x));
}

const std::string kScale = tensor_name(kScalerPrefix, "scale");
const std::string kGrowthTracker = tensor_name(kScalerPrefix, "growth_tracker");

}  // namespace

GradientScale::GradientScale(const ClipOptions& clip,
                             const std::optional<LossScalerOptions>& scaler,
                             const NamedTensors& parameters, bool shared)
    : clip_(clip), parameters_(parameters), shared_(shared) {
  if (scaler) scaler_.emplace(*scaler);
}

void GradientScale::begin_step(std::int64_t step) {
  step_ = step;
  overflow_ = false;
  squares_ = 0;
  whole_ = 1;
}

void GradientScale::measure(const Bucket& bucket, std::span<const BucketSlice> slices) {
  const double squares = squares_of(slices, bucket);
  if (!scaler_ || scaler_->at_its_end()) check_finite(squares, bucket, slices);
  squares_ += squares;
}

void GradientScale::measured() {
  overflow_ = !std::isfinite(squares_);
  whole_ = 1 / loss_scale();
  if (!needs_whole_gradient(clip_)) return;
  whole_ *= clip_coefficient(std::sqrt(squares_) / loss_scale(), clip_.norm);
}

double GradientScale::of(const Bucket& bucket, std::span<const BucketSlice> slices) {
  if (clip_.norm == 0 || !clip_.each_bucket) return whole_;
  const double squares = squares_of(slices, bucket);
  if (!scaler_) {
    check_finite(squares, bucket, slices);
    squares_ += squares;
  }
  return clip_coefficient(std::sqrt(squares) / loss_scale(), clip_.norm) / loss_scale();
}

void GradientScale::end_step() {
  if (clip_.norm > 0) norm_ = std::sqrt(squares_) / loss_scale();
  if (scaler_) scaler_->update(overflow_);
}

// Clipping would spread one bad element over all parameters.
void GradientScale::check_finite(double squares, const Bucket& bucket,
                                 std::span<const BucketSlice> slices) const {
  if (std::isfinite(squares)) return;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (std::isfinite(squares_of(slices.subspan(i, 1), bucket))) continue;
    const std::size_t p = bucket.parameters[bucket.parameter_at(slices[i].offset)];
    const std::string text = "training diverged: the " +
                             std::string(shared_ ? "mean over all workers of the " : "") +
                             "gradient of parameter '" + parameters_[p].first + "' in step " +
                             std::to_string(step_) + " is not finite";
    if (shared_) throw SharedError(ExitCode::diverged, text);
    throw Error(ExitCode::diverged, text);
  }
}

NamedTensors GradientScale::state() const {
  if (!scaler_) return {};
  return {{kScale, at::scalar_tensor(scaler_->scale(), at::kFloat)},
          {kGrowthTracker, at::scalar_tensor(scaler_->growth_tracker(), at::kLong)}};
}

void GradientScale::restore(const std::function<const at::Tensor&(const std::string& name)>& find) {
  if (!scaler_) return;
  scaler_->restore(find(kScale).item<double>(), find(kGrowthTracker).item<std::int64_t>());
}

}  // namespace decent
