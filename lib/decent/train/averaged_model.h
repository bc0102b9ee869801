#pragma once
// The averaged model of a checkpoint, for commands that use it.

#include <cstdint>
#include <filesystem>
#include <string>

#include "decent/checkpoint/manifest.h"
#include "decent/resume/context.h"
#include "decent/task/task.h"

namespace decent {

/// Which model was put into task.model.
struct AveragedModel {
  std::string text;  // its description, for messages
  std::int64_t step = 0;
  double epochs_done = 0;
  int replicas = 1;
  double distance = 0;       // consensus distance of the replicas; see average_replicas
  Numbers metrics = {};      // of its evaluation, if there was one
  std::string foreign = {};  // the checkpoint, if it is not of the run in the output folder
};

/// Fills task.model with the average over all replicas of a checkpoint: of their moving averages
/// (optimizer.ema) if recipe and checkpoint have them, else of their weights. `choice`: see
/// find_checkpoint; "none" leaves the model as its file has it. Collective. Throws SharedError
/// if there is no such checkpoint or it is of another model.
AveragedModel load_average(const ResumeContext& context, Task& task, const std::string& choice);

}  // namespace decent
