#pragma once
// The factor of gradients in the update: the clip coefficient over the loss scale.

#include <cstdint>
#include <optional>
#include <span>

#include "decent/optim/bucket_update.h"
#include "decent/optim/loss_scaler.h"
#include "decent/optim/whole_gradient.h"
#include "decent/parallel/named_tensors.h"
#include "decent/parallel/storage.h"

namespace decent {

/// The calls of a step are begin_step(); if the whole gradient is needed, measure() for every
/// bucket and then measured(); of() for every bucket; end_step(). Not thread-safe.
class GradientScale {
 public:
  /// Bucket::parameters are indices of `parameters`, whose names are used in messages. `shared`:
  /// gradients are the means over all workers, so that all of them find the same.
  GradientScale(const ClipOptions& clip, const std::optional<LossScalerOptions>& scaler,
                const NamedTensors& parameters, bool shared = false);

  void begin_step(std::int64_t step);

  /// Adds a bucket's part to the norm of the whole gradient. If an element is not finite, throws
  /// Error with ExitCode::diverged, or SharedError, unless a loss scale can still be lowered.
  void measure(const Bucket& bucket, std::span<const BucketSlice> slices);
  /// All buckets were measured.
  void measured();

  /// The factor of the gradients of `bucket`. Throws as measure() if each bucket has a norm of its
  /// own.
  double of(const Bucket& bucket, std::span<const BucketSlice> slices);

  void end_step();

  /// Whether the current or last step has a gradient that is not finite, and so updates nothing.
  bool overflowed() const { return overflow_; }
  /// L2 norm of the last step's gradient over all parameters, unscaled and before clipping; nullopt
  /// if clipping is off.
  std::optional<double> norm() const { return norm_; }

  bool scales_loss() const { return scaler_.has_value(); }
  bool loss_scale_at_its_end() const { return scaler_ && scaler_->at_its_end(); }
  /// The factor for the loss of the next step.
  double loss_scale() const { return scaler_ ? scaler_->scale() : 1.0; }

  /// The scaler's state under its names in checkpoints ("scaler.scale", "scaler.growth_tracker").
  NamedTensors state() const;
  /// Sets that state; `find` returns the tensor of a name.
  void restore(const std::function<const at::Tensor&(const std::string& name)>& find);

 private:
  void check_finite(double squares, const Bucket& bucket,
                    std::span<const BucketSlice> slices) const;

  ClipOptions clip_;
  std::optional<LossScaler> scaler_;
  NamedTensors parameters_;
  bool shared_;
  std::int64_t step_ = 0;
  bool overflow_ = false;
  double squares_ = 0;  // of this step's gradients, scaled, as far as they are measured
  double whole_ = 1;    // what this step's whole gradient is multiplied with
  std::optional<double> norm_;
};

}  // namespace decent
