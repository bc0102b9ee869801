#pragma once
// Whether a run can go on from a checkpoint, and what has changed since.

#include <string>
#include <vector>

#include "decent/checkpoint/manifest.h"
#include "decent/config/names.h"

namespace decent {

/// The run that is to go on from a checkpoint.
struct ResumingRun {
  Facts facts;
  int workers = 1;
  std::vector<config::MethodName> methods;  // all values of parallel.method
  bool copies_alike = false;       // all workers have the same parameters and optimizer states
  bool needs_near_copies = false;  // its exchange works only between weights that are near
};

/// Compares a checkpoint's facts with those of the run. Throws UserError naming what must be the
/// same and is not: tensors of the model, optimizer.name and accum_iter, batch_size,
/// grad_accumulation, data, seed, shuffle, and the topology where both average weights with
/// neighbours. Returns a line for everything else that differs, for the user to know; names, paths,
/// output, what only the screen shows and what neither uses are left out.
std::vector<std::string> check_can_resume(const Manifest& manifest, const ResumingRun& now);

/// What has changed of that which an exchange sends that needs near copies: the learning rates,
/// keys with config::KeyInfo::shapes_exchange, and the method where copies were not kept near.
/// Where that is anything, workers whose replicas the checkpoint holds must not go on with their
/// copies as they are. Empty for another number of workers, which start from the same weights, and
/// for a checkpoint whose copies are alike.
std::vector<std::string> exchange_changes(const Manifest& manifest, const ResumingRun& now);

/// The facts that decide what an evaluation's metrics mean: the samples of data.eval, how their
/// target is transformed, and keys with config::KeyInfo::changes_measure.
Facts measure_of(const Facts& facts);

/// Throws UserError where the model's tensors are not those of the checkpoint.
void check_same_model(const Manifest& manifest, const Facts& now);

}  // namespace decent
