#pragma once
// Which options need all gradients of a step before its first update.

#include <optional>

#include "decent/optim/loss_scaler.h"

namespace decent {

/// The norm to which gradients are clipped, as by torch.nn.utils.clip_grad_norm_.
struct ClipOptions {
  double norm = 0.0;         // L2, of one worker's gradients; 0 is off
  bool each_bucket = false;  // a norm for each bucket, instead of one over all parameters
};

/// One norm over all gradients scales every bucket.
inline bool needs_whole_gradient(const ClipOptions& clip) {
  return clip.norm > 0 && !clip.each_bucket;
}

/// An overflow in any gradient keeps every bucket from its update.
inline bool needs_whole_gradient(const std::optional<LossScalerOptions>& scaler) {
  return scaler.has_value();
}

}  // namespace decent
