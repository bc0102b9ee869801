#pragma once
// The loss scale for training in float16, without which small gradients would become 0:
// torch.amp.GradScaler as a small state machine.

#include <cstdint>

namespace decent {

struct LossScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2.0;           // > 1
  double backoff_factor = 0.5;          // in (0, 1)
  std::int64_t growth_interval = 2000;  // updates without overflow after which the scale grows
};

class LossScaler {
 public:
  /// Throws UserError for options out of range.
  explicit LossScaler(const LossScalerOptions& options);

  /// The factor by which the loss is multiplied and gradients are divided.
  double scale() const { return scale_; }
  /// Whether the scale is so small that a loss of 1 becomes the smallest positive float16 or less.
  /// If gradients still overflow then, the scale is not the reason.
  bool at_its_end() const { return scale_ <= 0x1p-24F; }
  /// Updates without overflow since the scale changed.
  std::int64_t growth_tracker() const { return growth_tracker_; }

  /// Must be called after each step; `overflow` says whether a gradient was not finite. Computes as
  /// torch._amp_update_scale_ does, in float32.
  void update(bool overflow);

  /// Takes over the state of an earlier scaler.
  void restore(double scale, std::int64_t growth_tracker);

 private:
  LossScalerOptions options_;
  float scale_;
  std::int64_t growth_tracker_ = 0;
};

}  // namespace decent
