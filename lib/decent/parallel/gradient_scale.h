#pragma once
// The factor of gradients in the update: the clip coefficient over the loss scale.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "decent/optim/bucket_update.h"
#include "decent/optim/loss_scaler.h"
#include "decent/optim/whole_gradient.h"
#include "decent/parallel/late_read.h"
#include "decent/parallel/named_tensors.h"
#include "decent/parallel/storage.h"

namespace decent {

/// The factor of a bucket's gradients; see BucketStep.
struct GradientFactor {
  double grad_scale = 1;
  const double* device_scale = nullptr;
};

/// The calls of a step are begin_step(); if the whole gradient is needed, measure() for every
/// bucket and then measured(); of() for every bucket; end_step(). Not thread-safe.
///
/// On a GPU, only measured() waits. With a norm for each bucket, the factor stays on the GPU. A
/// norm that is not finite then keeps this bucket and all later ones from being updated, until the
/// host finds it in the next step or in settle().
class GradientScale {
 public:
  /// `buckets` must outlive this object; Bucket::parameters are indices of `parameters`, whose
  /// names are used in messages. `shared`: gradients are means over all workers, so all workers
  /// find the same.
  GradientScale(const ClipOptions& clip, const std::optional<LossScalerOptions>& scaler,
                std::span<const Bucket> buckets, const NamedTensors& parameters,
                bool shared = false);

  /// Throws as settle().
  void begin_step(std::int64_t step);

  /// Begins to add up a bucket's part of the norm of the whole gradient.
  void measure(std::size_t bucket, std::span<const BucketSlice> slices);
  /// Call it after all buckets were measured. If an element is not finite, throws Error with
  /// ExitCode::diverged, or SharedError, unless a loss scale can still be lowered.
  void measured();

  /// The factor of the gradients of `bucket`. Throws as measured() if each bucket has a norm of its
  /// own that is known on the host.
  GradientFactor of(std::size_t bucket, std::span<const BucketSlice> slices);

  void end_step();

  /// Waits for the norms of the last step. Throws as measured().
  void settle();

  /// Whether hold_unless_finite() works: on a GPU, without a loss scaler, and if gradients go to no
  /// other worker.
  bool can_hold() const { return buckets_.front().x.is_cuda() && !scaler_ && !shared_; }
  /// If `loss`, one element on the GPU, is not finite, all updates from now on change nothing. Does
  /// not wait.
  void hold_unless_finite(const at::Tensor& loss);

  /// Whether the current or last step has a gradient that is not finite, and so updates nothing.
  bool overflowed() const { return overflow_; }
  /// L2 norm of the last step's gradient over all parameters, unscaled and before clipping; nullopt
  /// if clipping is off. Throws as settle().
  std::optional<double> norm();

  bool scales_loss() const { return scaler_.has_value(); }
  bool loss_scale_at_its_end() const { return scaler_ && scaler_->at_its_end(); }
  /// The factor for the loss of the next step.
  double loss_scale() const { return scaler_ ? scaler_->scale() : 1.0; }

  /// The scaler's state under its names in checkpoints ("scaler.scale", "scaler.growth_tracker").
  NamedTensors state() const;
  /// Sets that state; `find` returns the tensor of a name.
  void restore(const std::function<const at::Tensor&(const std::string& name)>& find);

 private:
  // The norm of a bucket's gradients.
  struct BucketNorm {
    std::vector<BucketSlice> slices = {};  // their gradients may be freed
    at::Tensor sums = {};                  // partial sums of squares, on the device
    double squares = 0;                    // set once the host has read it
  };

  bool clips_each() const { return clip_.norm > 0 && clip_.each_bucket; }
  at::Tensor all_sums() const;
  void take(const at::Tensor& sums);
  GradientFactor clip(std::size_t bucket);
  [[noreturn]] void refuse(std::size_t bucket, std::span<const double> sums) const;

  ClipOptions clip_;
  std::optional<LossScaler> scaler_;
  std::span<const Bucket> buckets_;
  NamedTensors parameters_;
  bool shared_;
  std::vector<BucketNorm> norms_;  // by bucket
  at::Tensor factors_;             // [buckets], float64 on the device: with a norm for each bucket
  at::Tensor guard_;               // [1], on a GPU: 1, or NaN once a number was not finite
  LateRead late_;                  // all_sums() of the last step
  std::int64_t step_ = 0;
  bool overflow_ = false;
  double squares_ = 0;  // of this step's gradients, scaled, as far as they are measured
  double whole_ = 1;    // factor of this step's whole gradient
  std::optional<double> norm_;
};

}  // namespace decent
