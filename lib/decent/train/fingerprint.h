#pragma once
// What all workers must have in common before the first step.

#include <string>
#include <vector>

#include "decent/checkpoint/facts.h"
#include "decent/checkpoint/manifest.h"
#include "decent/comm/world.h"
#include "decent/task/task.h"
#include "decent/topology/topology.h"
#include "decent/train/plan.h"

namespace decent {

/// The facts that must agree: the keys of the recipe that shape training (all that config::KeyInfo
/// does not let differ), the kind of device and the backend, names, shapes and dtypes of parameters
/// and buffers, the model's code, the phases of the topology, and for each source its fields, its
/// number of samples and a checksum of some samples.
Facts fingerprint_of(const Task& task, const std::vector<Phase>& topology);

/// The same facts, with every key of the recipe. A checkpoint keeps them, so that a run that
/// resumes from it can tell what has changed.
Facts facts_of(const Task& task, const std::vector<Phase>& topology);

/// The facts of a whole run, with its learning rates.
Facts facts_of(const Run& run);

/// Whether a checkpoint holds moving averages of the weights: its run had optimizer.ema.
bool has_ema(const Manifest& manifest);

/// A text for the user if the fingerprints of the workers, in the order of ranks, differ: which
/// ranks differ from the most common fingerprint, and in what; at most five lines. Empty if all
/// agree.
std::string difference_text(const std::vector<Facts>& fingerprints);

/// Compares the fingerprints of all workers. Collective. Throws SharedError naming the differences.
/// Settings that may be given differently, but must be the same on all workers, are taken from
/// rank 0 (log.every_steps: losses are averaged over workers on logged steps).
void compare_workers(World& world, Task& task, const std::vector<Phase>& topology);

}  // namespace decent
