#pragma once
// From a checkpoint's files to tensors in memory.

#include <memory>
#include <optional>

#include "decent/comm/communicator.h"
#include "decent/parallel/named_tensors.h"
#include "decent/resume/checkpoint_search.h"

namespace decent {

/// Copies this worker's own replica into `targets`, tensors with the names that checkpoints have.
/// The checkpoint is whole and has as many replicas as there are workers; what is not in this
/// worker's folder comes from a worker that has it. A target that the checkpoint does not have
/// stays as it is. Throws CheckpointDamaged where shapes or types differ. Collective.
void load_replica(FoundCheckpoint& found, Communicator& communicator, const NamedTensors& targets);

struct AverageRules {
  /// Floating-point buffers are averaged, but for those that hold the same bits in all replicas; if
  /// not, they are those of the first replica, as all other buffers are.
  bool average_buffers = true;
};

/// Fills `targets` with the average over all replicas that there are: the sum in float64, rounded
/// once. Counts of updates are the highest, the loss scale and its count the lowest. What all
/// workers had alike stays as it was, bit for bit. Returns the
/// consensus distance sqrt(mean over replicas of ||x_i - mean||^2) over all parameters. The same on
/// every worker. Collective.
double average_replicas(const FoundCheckpoint& found, Communicator& communicator,
                        const NamedTensors& targets, const AverageRules& rules);

}  // namespace decent
