#include "decent/parallel/gradient_scale.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/scalar_tensor.h>

#include <cmath>
#include <numeric>

#include "decent/core/error.h"
#include "decent/optim/bucket_kernels.h"
#include "decent/optim/gradient_norm.h"

namespace decent {
namespace {

double total(std::span<const double> sums) {
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

const std::string kScale = tensor_name(kScalerPrefix, "scale");
const std::string kGrowthTracker = tensor_name(kScalerPrefix, "growth_tracker");

}  // namespace

GradientScale::GradientScale(const ClipOptions& clip,
                             const std::optional<LossScalerOptions>& scaler,
                             std::span<const Bucket> buckets, const NamedTensors& parameters,
                             bool shared)
    : clip_(clip),
      buckets_(buckets),
      parameters_(parameters),
      shared_(shared),
      norms_(buckets.size()) {
  if (scaler) scaler_.emplace(*scaler);
  const at::Tensor& x = buckets.front().x;
  const auto numbers = x.options().dtype(at::kDouble);
  if (clips_each()) factors_ = at::empty({std::ssize(buckets)}, numbers);
  if (clips_each() || x.is_cuda()) guard_ = at::ones({1}, numbers);
}

void GradientScale::begin_step(std::int64_t step) {
  settle();
  step_ = step;
  overflow_ = false;
  squares_ = 0;
  whole_ = 1;
}

void GradientScale::measure(std::size_t bucket, std::span<const BucketSlice> slices) {
  const at::Tensor& x = buckets_[bucket].x;
  BucketNorm& norm = norms_[bucket];
  norm.slices.assign(slices.begin(), slices.end());
  norm.sums = at::empty({partial_sums(slices, scalar_of(x), kernels_of(x))},
                        x.options().dtype(at::kDouble));
  add_up_squares(slices, scalar_of(x), norm.sums.mutable_data_ptr<double>(), kernels_of(x));
}

// All partial sums of the step.
at::Tensor GradientScale::all_sums() const {
  std::vector<at::Tensor> sums;
  for (const BucketNorm& norm : norms_) sums.push_back(norm.sums);
  return at::cat(sums);
}

// `sums` are all_sums() on the CPU.
void GradientScale::take(const at::Tensor& sums) {
  std::span<const double> left(sums.const_data_ptr<double>(),
                               static_cast<std::size_t>(sums.numel()));
  squares_ = 0;
  for (std::size_t b = 0; b < norms_.size(); ++b) {
    const auto own = left.first(static_cast<std::size_t>(norms_[b].sums.numel()));
    norms_[b].squares = total(own);
    const bool may_overflow = scaler_ && !scaler_->at_its_end();
    if (!std::isfinite(norms_[b].squares) && !may_overflow) refuse(b, own);
    squares_ += norms_[b].squares;
    left = left.subspan(own.size());
  }
}

void GradientScale::measured() {
  take(all_sums().cpu());
  overflow_ = !std::isfinite(squares_);
  whole_ = 1 / loss_scale();
  if (!needs_whole_gradient(clip_)) return;
  whole_ *= clip_coefficient(std::sqrt(squares_) / loss_scale(), clip_.norm);
}

GradientFactor GradientScale::of(std::size_t bucket, std::span<const BucketSlice> slices) {
  const bool is_measured = scaler_.has_value();
  if (clips_each() && !is_measured) {
    measure(bucket, slices);
    return clip(bucket);
  }
  const double* guard = can_hold() ? guard_.const_data_ptr<double>() : nullptr;
  if (!clips_each()) return {whole_, guard};
  const double norm = std::sqrt(norms_[bucket].squares) / loss_scale();
  return {clip_coefficient(norm, clip_.norm) / loss_scale(), guard};
}

// The factor of a bucket from its own norm, on its device.
GradientFactor GradientScale::clip(std::size_t bucket) {
  const at::Tensor& x = buckets_[bucket].x;
  const at::Tensor& sums = norms_[bucket].sums;
  double* const factor = factors_.mutable_data_ptr<double>() + bucket;
  or_cpu(kernels_of(x))
      .clip({.sums = sums.const_data_ptr<double>(),
             .count = sums.numel(),
             .most = clip_.norm,
             .loss_scale = loss_scale(),
             .factor = factor,
             .guard = guard_.mutable_data_ptr<double>()});
  if (x.is_cuda()) return {1, factor};
  if (std::isnan(*factor)) {
    refuse(bucket, {sums.const_data_ptr<double>(), static_cast<std::size_t>(sums.numel())});
  }
  return {*factor, nullptr};
}

void GradientScale::hold_unless_finite(const at::Tensor& loss) {
  guard_.add_(loss.detach().reshape({1}), /*alpha=*/0);  // 0 times inf or NaN is NaN
}

void GradientScale::end_step() {
  if (clips_each() && !scaler_) return late_.start(all_sums());
  if (clip_.norm > 0) norm_ = std::sqrt(squares_) / loss_scale();
  if (scaler_) scaler_->update(overflow_);
}

void GradientScale::settle() {
  if (!late_.under_way()) return;
  take(late_.take());
  norm_ = std::sqrt(squares_) / loss_scale();
}

std::optional<double> GradientScale::norm() {
  settle();
  return norm_;
}

// Clipping would spread one bad element over all parameters.
void GradientScale::refuse(std::size_t bucket, std::span<const double> sums) const {
  const Bucket& of = buckets_[bucket];
  const std::vector<BucketSlice>& slices = norms_[bucket].slices;
  std::size_t i = 0;
  for (std::size_t done = 0; i + 1 < slices.size(); ++i) {
    const auto count = static_cast<std::size_t>(
        partial_sums(std::span(slices).subspan(i, 1), scalar_of(of.x), kernels_of(of.x)));
    if (!std::isfinite(total(sums.subspan(done, count)))) break;
    done += count;
  }
  const std::string text = "training diverged: the " +
                           std::string(shared_ ? "mean over all workers of the " : "") +
                           "gradient of parameter '" +
                           parameters_[of.parameters[of.parameter_at(slices[i].offset)]].first +
                           "' in step " + std::to_string(step_) + " is not finite";
  if (shared_) throw SharedError(ExitCode::diverged, text);
  throw Error(ExitCode::diverged, text);
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
