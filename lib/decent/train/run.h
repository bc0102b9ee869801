#pragma once
// A run that this worker has opened, planned and tried by itself.

#include "decent/task/task.h"
#include "decent/task/trial.h"
#include "decent/train/plan.h"

namespace decent {

struct Run {
  Task task;
  Plan plan;
  Trial trial;
};

/// Opens the task of `recipe`, plans its whole run, and tries a batch of each source. Throws
/// UserError. Talks to no other worker. `known`: see open_task.
Run prepare_run(const Recipe& recipe, const Launch& launch, const LearnedData* known = nullptr);

}  // namespace decent
