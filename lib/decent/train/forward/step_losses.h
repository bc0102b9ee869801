#pragma once
// The losses of steps, where a GPU may still be computing them.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "decent/parallel/late_read.h"

namespace decent {

/// What is known of a step that is over.
struct StepLoss {
  std::int64_t step = 0;
  std::vector<double> micro_batches;  // the loss of each
  double seconds = 0;

  double mean() const;
  bool is_finite() const;
};

/// Tells of each step once, in their order: when it ends, if its losses are known, else when
/// settle() is called, which the training loop does when the GPU has work of the next step.
/// Threads: the training thread.
class StepLosses {
 public:
  using Saw = std::function<void(const StepLoss&)>;

  explicit StepLosses(Saw saw) : saw_(std::move(saw)) {}

  /// The loss of the next micro-batch of a step: as a number, or as a tensor of one element that is
  /// not read yet. All of a step are the one or the other. The step before it has been settled.
  void add(double loss) { known_.push_back(loss); }
  void add(const at::Tensor& loss) { unread_.push_back(loss.detach()); }

  void end_step(std::int64_t step, double seconds);
  /// Tells of the micro-batches so far of a step that has failed, where nobody read their losses.
  void end_early(std::int64_t step);

  /// Waits for the losses of the last step, if nobody was told of it yet.
  void settle();

 private:
  Saw saw_;
  std::vector<double> known_;       // of the step under way
  std::vector<at::Tensor> unread_;  // the same
  std::optional<StepLoss> last_;    // the step that nobody was told of
  LateRead late_;                   // its losses
};

}  // namespace decent
