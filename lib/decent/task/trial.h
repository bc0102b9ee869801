#pragma once
// One batch of each source through the model before a run begins, so that mistakes show at once.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decent/core/membership.h"
#include "decent/task/loss_watch.h"
#include "decent/task/task.h"

namespace decent {

/// What the batches showed, on this worker.
struct Trial {
  /// Whether the output looks like probabilities in all batches, if the loss itself turns logits
  /// into probabilities (see probabilities.h); nullopt if that was not checked.
  std::optional<bool> gives_probabilities = {};
  std::int64_t classes = 0;  // in the output for data.predict; 0: it has none
  std::optional<std::int64_t> target_classes = {};  // of which a target may be one
  // For training only:
  std::vector<std::string> notes = {};  // of check_samples()
  bool weights_needed_later = false;    // backward uses a weight after its gradient is complete
  UntrainedLoss untrained_loss = {};
  std::string divergence = {};                     // see divergence_text; empty: a finite loss
  std::vector<std::string> without_gradient = {};  // trained parameters that got none
};

/// Tries the two batch sizes that this worker will evaluate, those of data.predict, and the
/// samples `first_batch` of task.train forward and backward, if the task has these sources. For
/// training it then checks all samples, see check_samples(). Afterwards the model's buffers are as
/// before, and the model gives logits only if they fit its output. Throws UserError.
Trial try_task(Task& task, const Member& member, std::span<const std::int64_t> first_batch);

}  // namespace decent
