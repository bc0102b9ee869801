#pragma once
// From a checkpoint's files to tensors in memory.

#include <memory>
#include <optional>

#include "decent/comm/communicator.h"
#include "decent/parallel/named_tensors.h"
#include "decent/resume/starting_point.h"

namespace decent {

/// Copies this worker's own replica into `targets`, tensors under their names in checkpoints. The
/// checkpoint is whole and has as many replicas as there are workers; a replica that is not in this
/// worker's folder comes from a worker that has it. A target that is not in the checkpoint stays as
/// it is. Throws CheckpointDamaged if shapes or types differ. Collective.
void load_replica(FoundCheckpoint& found, Communicator& communicator, const NamedTensors& targets);

/// Fills `targets` with the average over all replicas that are not missing: the sum in float64,
/// rounded once. Counts of updates get the highest value of any replica, the loss scale and its
/// count the lowest. Values that were alike on all workers stay the same, bit for bit.
/// Floating-point buffers are averaged only if `average_buffers`, and not if they hold the same
/// bits in all replicas; else they come from the first replica, as all other buffers do. Returns
/// the consensus distance sqrt(mean over replicas of ||x_i - mean||^2) over all parameters. The
/// same on every worker. Collective.
double average_replicas(const FoundCheckpoint& found, Communicator& communicator,
                        const NamedTensors& targets, bool average_buffers);

/// Fills `state`, the tensors of a worker's state under their names in checkpoints, for a run that
/// resumes; and those of `untrained`, the model's parameters that it does not train, that the
/// checkpoint's run trained. Tensors that the checkpoint lacks stay as they are, except that a
/// missing moving average (of a parameter that was frozen, say) begins with the parameter's value.
/// The average of the weights is taken afterwards, by the caller. `average_buffers`: see
/// average_replicas. Collective.
void load_state(FoundCheckpoint& found, Communicator& communicator, const NamedTensors& state,
                const NamedTensors& untrained, BeginWith begin, bool average_buffers);

}  // namespace decent
