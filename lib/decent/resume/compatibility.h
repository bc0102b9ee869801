#pragma once
// Whether a run can resume from a checkpoint, and what has changed since it was saved.

#include <string>
#include <vector>

#include "decent/checkpoint/manifest.h"
#include "decent/config/names.h"

namespace decent {

/// The run that is to resume from a checkpoint.
struct ResumingRun {
  Facts facts;
  int workers = 1;
  config::Names names;             // all that recipes of this version may name
  bool copies_alike = false;       // all workers have the same parameters and optimizer states
  bool needs_near_copies = false;  // its exchange works only between weights that are close
};

/// Compares a checkpoint's facts with those of the run. Throws UserError naming the differences
/// that are not allowed: in tensors of the model, optimizer.name and accum_iter, batch_size,
/// grad_accumulation, data, seed, shuffle, and the topology if both average weights with
/// neighbours. Returns a line for the user about each other difference, except in names, paths,
/// output, settings of the screen, and keys that neither run uses.
std::vector<std::string> check_can_resume(const Manifest& manifest, const ResumingRun& now);

/// The changes that matter to an exchange which needs near copies: in the learning rates, in keys
/// with config::KeyInfo::shapes_exchange, and in the method if the old one did not keep copies
/// near. If there are any, workers must not resume with their replicas in the checkpoint as they
/// are. Empty if the number of workers differs, since all then start from the same weights, and
/// for a checkpoint whose copies are alike.
std::vector<std::string> exchange_changes(const Manifest& manifest, const ResumingRun& now);

/// The facts that decide what an evaluation's metrics mean: the samples of data.eval, how their
/// target is transformed, and keys with config::KeyInfo::changes_measure.
Facts measure_of(const Facts& facts);

/// Throws UserError if the model's tensors are not those of the checkpoint.
void check_same_model(const Manifest& manifest, const Facts& now);

}  // namespace decent
