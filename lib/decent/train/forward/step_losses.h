#pragma once
// The losses of steps, which a GPU may still be computing.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "decent/parallel/late_read.h"

namespace decent {

/// The losses and the time of a step that is over.
struct StepLoss {
  std::int64_t step = 0;
  std::vector<double> micro_batches;  // the loss of each
  double seconds = 0;

  double mean() const;
  bool is_finite() const;
};

/// Reports each step once, in order: when it ends if its losses are known, else when settle() is
/// called. The training loop calls that when the GPU has work for the next step.
/// Threads: the training thread.
class StepLosses {
 public:
  using Saw = std::function<void(const StepLoss&)>;

  explicit StepLosses(Saw saw) : saw_(std::move(saw)) {}

  /// Adds the loss of the next micro-batch of a step: a number, or a tensor of one element that is
  /// not read yet. A step has only one kind. The previous step must have been settled.
  void add(double loss) { known_.push_back(loss); }
  void add(const at::Tensor& loss) { unread_.push_back(loss.detach()); }

  void end_step(std::int64_t step, double seconds);
  /// Reports the micro-batches so far of a step that has failed, if their losses are not read yet.
  void end_early(std::int64_t step);

  /// Waits for the losses of the last step, if it is not reported yet.
  void settle();

 private:
  Saw saw_;
  std::vector<double> known_;       // of the step under way
  std::vector<at::Tensor> unread_;  // the same
  std::optional<StepLoss> last_;    // the step that is not reported yet
  LateRead late_;                   // its losses
};

}  // namespace decent
