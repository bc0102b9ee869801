#pragma once
// Whether a run can go on from a checkpoint, and what has changed since.

#include <string>
#include <vector>

#include "decent/checkpoint/manifest.h"

namespace decent {

/// Compares a checkpoint's facts with those of the run that is to go on from it, on `workers`
/// workers. Throws UserError naming what must be the same and is not: tensors of the model,
/// optimizer.name and accum_iter, topology, batch_size, grad_accumulation, data, seed, shuffle.
/// Returns a line for everything else that differs, for the user to know; names, paths, output
/// and what only the screen shows are left out.
std::vector<std::string> check_can_resume(const Manifest& manifest, const Facts& now, int workers);

/// What has changed of that which an exchange sends that needs near copies: the learning rates, and
/// keys with config::KeyInfo::shapes_exchange. Where that is anything, workers whose replicas the
/// checkpoint holds must not go on with their copies as they are. Empty for another number of
/// workers, which start from the same weights.
std::vector<std::string> exchange_changes(const Manifest& manifest, const Facts& now, int workers);

/// Throws UserError where the model's tensors are not those of the checkpoint.
void check_same_model(const Manifest& manifest, const Facts& now);

}  // namespace decent
