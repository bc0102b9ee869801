#pragma once
// From the recipe to what updates the weights.

#include <functional>
#include <memory>
#include <string>

#include "decent/optim/bucket_update.h"
#include "decent/parallel/decentralized_options.h"
#include "decent/train/run.h"

namespace decent {

std::shared_ptr<const BucketUpdate> make_update(const OptimizerRecipe& recipe);

DecentralizedOptions parallel_options(const Run& run, std::function<void(const std::string&)> warn);

/// Whether buckets are updated while backward runs.
bool updates_in_backward(const Run& run);

/// Whether what its exchange sends means something only to workers whose weights are near.
bool needs_near_copies(const ParallelRecipe& recipe);

/// The topology's name, or "custom".
std::string topology_name(const TopologyRecipe& recipe);

}  // namespace decent
