#pragma once
// What all workers must have in common before the first step.

#include <string>
#include <vector>

#include "decent/checkpoint/facts.h"
#include "decent/checkpoint/manifest.h"
#include "decent/comm/world.h"
#include "decent/task/task.h"
#include "decent/topology/topology.h"
#include "decent/train/run.h"

namespace decent {

/// The keys of the recipe that shape training (those that config::KeyInfo does not let differ), the
/// kind of device and what carries weights between workers, names, shapes and dtypes of parameters
/// and buffers, the model's code, the phases of the topology, and of each source the fields, the
/// number of samples and a checksum of some.
Facts fingerprint_of(const Task& task, const std::vector<Phase>& topology);

/// The same with every key of the recipe: what a checkpoint keeps, so that a run that goes on from
/// it can tell what has changed.
Facts facts_of(const Task& task, const std::vector<Phase>& topology);

/// The same of a whole run, with its learning rates.
Facts facts_of(const Run& run);

/// Whether a checkpoint holds moving averages of the weights: its run had optimizer.ema.
bool has_ema(const Manifest& manifest);

/// What to tell the user where the fingerprints of the workers, in the order of ranks, differ:
/// which rank differs from the most common one, and in what; at most five lines. Empty where all
/// agree.
std::string difference_text(const std::vector<Facts>& fingerprints);

/// Compares what this worker would train with all others'. Collective. Throws SharedError naming
/// what differs. Settings that every worker needs alike but may be given differently are taken from
/// rank 0 (log.every_steps: losses are averaged over workers on logged steps).
void compare_workers(World& world, Task& task, const std::vector<Phase>& topology);

}  // namespace decent
