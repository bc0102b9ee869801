#pragma once
// From the recipe to the update of weights.

#include <memory>
#include <string>

#include "decent/optim/bucket_update.h"
#include "decent/parallel/training_options.h"
#include "decent/train/methods.h"
#include "decent/train/plan.h"

namespace decent {

std::shared_ptr<const BucketUpdate> make_update(const OptimizerRecipe& recipe);

UpdateTime update_time(const Run& run);

/// As the recipe of `run` says.
TrainingOptions training_options(const Run& run, const TrainingSigns& signs);

/// Whether buckets are updated while backward runs.
bool updates_in_backward(const Run& run);

/// Whether the exchange works only between workers whose weights are close.
bool needs_near_copies(const ParallelRecipe& recipe);

/// The topology's name, or "custom".
std::string topology_name(const TopologyRecipe& recipe);
/// That of the topology by which `run` trains.
std::string topology_name(const Run& run);

}  // namespace decent
