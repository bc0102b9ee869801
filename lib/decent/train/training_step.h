#pragma once
// One step of training on this worker.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "decent/data/device_batch.h"
#include "decent/data/prefetcher.h"
#include "decent/train/forward/training_forward.h"
#include "decent/train/session.h"
#include "decent/train/train_lines.h"

namespace decent {

/// Threads: the training thread.
class TrainingStep {
 public:
  /// Batches are read ahead from now on. `session` and `lines` must outlive this object.
  TrainingStep(Session& session, TrainLines& lines);

  /// Does the next step, and returns its seconds. Collective, through what it waits for. Throws
  /// Error with ExitCode::diverged for a loss or gradient that is not finite, UserError for samples
  /// that do not fit the model and for a loss that no parameter takes part in, PeerLost.
  double run();

  /// Waits for the losses of the last step, if a GPU still computes them. Throws as run() does.
  void settle() { forward_.settle(); }

  /// The step whose loss was found not to be finite after it ended.
  std::optional<std::int64_t> diverged_step() const { return forward_.diverged_step(); }

 private:
  void add_gradients(std::int64_t micro_batch);
  std::unique_ptr<DeviceBatch> next_batch();
  void backward(const at::Tensor& loss);
  std::int64_t accumulation() const { return session_.recipe().train.grad_accumulation; }

  Session& session_;
  TrainLines& lines_;
  TrainingForward forward_;
  std::unique_ptr<Prefetcher> read_ahead_;
  DeviceBatches batches_;
};

}  // namespace decent
