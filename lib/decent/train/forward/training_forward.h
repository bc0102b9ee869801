#pragma once
// Forward and loss of the steps of training.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "decent/core/trace.h"
#include "decent/data/device_batch.h"
#include "decent/data/prefetcher.h"
#include "decent/parallel/trained_parameters.h"
#include "decent/train/forward/step_losses.h"
#include "decent/train/plan.h"

namespace decent {

/// Reads the batches of the run's steps ahead, in order. `run` must outlive the result; `trace` may
/// be null.
std::unique_ptr<Prefetcher> training_batches(const Run& run, std::shared_ptr<Trace> trace);

/// Runs the model on micro-batches and reports their losses.
///
/// The host reads a loss before its backward(), so that no loss that is not finite reaches a
/// weight. On a GPU this costs a wait in every step. So if TrainedParameters can hold all updates
/// there, the host reads the loss one step later, when the GPU has the next forward to do. Losses
/// of traced steps are not read late: their spans show when forward ends.
///
/// Threads: the training thread.
class TrainingForward {
 public:
  /// `run` and `parallel` must outlive this object. `trace` may be null. `saw` is called once for
  /// each step, in order, by end_step() or the next settle().
  TrainingForward(Run& run, int rank, TrainedParameters& parallel, std::shared_ptr<Trace> trace,
                  StepLosses::Saw saw);

  void begin_step();
  /// The loss of micro-batch `micro_batch` of the step under way, with gradient. Throws Error with
  /// ExitCode::diverged for a loss that is not finite, unless a loss scale can still be lowered,
  /// and UserError naming the samples if they do not fit the model.
  at::Tensor run(const DeviceBatch& batch, std::int64_t micro_batch);
  void end_step(double seconds);

  /// Waits for the losses of the last step, if they are not read yet. Throws Error as run() does.
  void settle() { losses_.settle(); }
  /// Called after backward() found a gradient that is not finite: settles the step under way, and
  /// throws if a loss is the cause.
  void settle_early() { losses_.end_early(parallel_.step() + 1); }

  /// The step whose loss was found not to be finite after it ended.
  std::optional<std::int64_t> diverged_step() const { return diverged_step_; }

 private:
  bool may_read_late() const;
  bool may_be_overflow() const;
  at::Tensor forward(const DeviceBatch& batch, std::int64_t micro_batch);
  void look_at(const StepLoss& loss);
  std::vector<std::int64_t> samples(std::int64_t step, std::int64_t micro_batch) const;
  std::string late_divergence_text(const StepLoss& loss) const;

  Run& run_;
  int rank_;
  TrainedParameters& parallel_;
  std::shared_ptr<Trace> trace_;
  StepLosses::Saw saw_;
  StepLosses losses_;
  bool reads_late_ = false;  // the losses of the step under way
  std::optional<std::int64_t> diverged_step_;
};

}  // namespace decent
