#pragma once
// What gradients are multiplied with before they update: clipping, and the way back from a loss
// that was scaled.

#include <cstdint>
#include <optional>
#include <span>

#include "decent/optim/bucket_update.h"
#include "decent/optim/loss_scaler.h"
#include "decent/parallel/decentralized_options.h"
#include "decent/parallel/storage.h"

namespace decent {

/// A step is begin_step(), where the whole gradient is needed measure() for every bucket and
/// measured(), then of() for every bucket, then end_step(). Not thread-safe.
class GradientScale {
 public:
  /// `parameters`, by which buckets count theirs, are named where a gradient is not finite.
  GradientScale(const ClipOptions& clip, const std::optional<LossScalerOptions>& scaler,
                const NamedTensors& parameters);

  void begin_step(std::int64_t step);

  /// Takes a bucket's part of the whole gradient into account. Throws Error with
  /// ExitCode::diverged where a number in it is not finite, unless the loss scale may come down.
  void measure(const Bucket& bucket, std::span<const BucketSlice> slices);
  /// All buckets were.
  void measured();

  /// What the gradients of `bucket` are multiplied with. Throws as measure() where each bucket has
  /// a norm of its own.
  double of(const Bucket& bucket, std::span<const BucketSlice> slices);

  void end_step();

  /// Whether the last step, or the one under way, has a gradient that is not finite: it updates
  /// nothing.
  bool overflowed() const { return overflow_; }
  /// Of the last step's gradient over all parameters, unscaled and before clipping; nothing where
  /// clipping is off.
  std::optional<double> norm() const { return norm_; }

  bool scales_loss() const { return scaler_.has_value(); }
  bool loss_scale_at_its_end() const { return scaler_ && scaler_->at_its_end(); }
  /// What the loss of the next step is to be multiplied with.
  double loss_scale() const { return scaler_ ? scaler_->scale() : 1.0; }

  /// The scaler's numbers as checkpoints have them ("scaler.scale", "scaler.growth_tracker").
  NamedTensors state() const;
  /// `find` gives the tensor of a name.
  void restore(const std::function<const at::Tensor&(const std::string& name)>& find);

 private:
  void check_finite(double squares, const Bucket& bucket,
                    std::span<const BucketSlice> slices) const;

  ClipOptions clip_;
  std::optional<LossScaler> scaler_;
  NamedTensors parameters_;
  std::int64_t step_ = 0;
  bool overflow_ = false;
  double squares_ = 0;  // of this step's gradients, scaled, as far as they are measured
  double whole_ = 1;    // what this step's whole gradient is multiplied with
  std::optional<double> norm_;
};

}  // namespace decent
