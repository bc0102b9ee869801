#pragma once
// From a checkpoint to the state of a run that resumes from it.

#include "decent/comm/communicator.h"
#include "decent/parallel/named_tensors.h"
#include "decent/resume/checkpoint_search.h"
#include "decent/task/task.h"

namespace decent {

/// Fills `state`, the tensors of a worker's state under their names in checkpoints, and parameters
/// of task.model that are no longer trained. `from_average`: all workers get the average of the
/// replicas and optimizer states. Tensors that the checkpoint lacks stay as they are, except that
/// a missing moving average (of a parameter that was frozen, say) begins with the parameter's
/// value. Collective.
void load_state(FoundCheckpoint& found, Communicator& communicator, const Task& task,
                const NamedTensors& state, bool from_average);

}  // namespace decent
