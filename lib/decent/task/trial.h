#pragma once
// One batch of each source through the model before a run begins, so that mistakes show at once.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decent/core/membership.h"
#include "decent/report/loss_watch.h"
#include "decent/task/task.h"

namespace decent {

/// What the batches showed, on this worker.
struct Trial {
  /// Whether the output looks like probabilities in all batches, where the loss turns logits into
  /// such itself (see probabilities.h); nothing where that was not looked at.
  std::optional<bool> gives_probabilities = {};
  std::int64_t classes = 0;  // that the output of data.predict tells apart; 0: it has none
  std::optional<std::int64_t> target_classes = {};  // that a target of classes may be one of
  // Of a task for training:
  std::vector<std::string> notes = {};  // of check_samples()
  bool weights_needed_later = false;    // backward uses a weight after its gradient is complete
  UntrainedLoss untrained_loss = {};
  std::string divergence = {};                     // see divergence_text; empty: a finite loss
  std::vector<std::string> without_gradient = {};  // parameters to train that it gave none
};

/// Tries the two batch sizes that the worker at `rank` will evaluate, those of data.predict, and
/// the samples `first_batch` of task.train forward and backward, where the task has these sources.
/// Of a task for training it then looks at all samples, see check_samples().
/// The model's buffers are as before after it, and it gives logits only where these fit its output.
/// Throws UserError.
Trial try_task(Task& task, const Membership& workers, int rank,
               std::span<const std::int64_t> first_batch);

}  // namespace decent
