#pragma once
// The loss scale of training in float16, whose gradients would be too small for it: torch's
// GradScaler as a small state machine.

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

  /// What the loss is multiplied with, and gradients are divided by.
  double scale() const { return scale_; }
  /// Whether even a loss of size 1 is scaled to the smallest number of float16 or less: what is
  /// still not finite then is not the scale's doing.
  bool at_its_end() const { return scale_ <= 0x1p-24F; }
  /// Updates without overflow since the scale changed.
  std::int64_t growth_tracker() const { return growth_tracker_; }

  /// After each step, `overflow` where a gradient was not finite; as torch's _amp_update_scale_, in
  /// float32.
  void update(bool overflow);

  /// Goes on from an earlier state.
  void restore(double scale, std::int64_t growth_tracker);

 private:
  LossScalerOptions options_;
  float scale_;
  std::int64_t growth_tracker_ = 0;
};

}  // namespace decent
