#include "decent/train/averaged_model.h"

#include <filesystem>

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/checkpoint/facts.h"
#include "decent/core/error.h"
#include "decent/parallel/named_tensors.h"
#include "decent/resume/compatibility.h"
#include "decent/resume/replica_loader.h"
#include "decent/resume/starting_point.h"
#include "decent/runfolder/run_folder.h"
#include "decent/train/fingerprint.h"

namespace decent {
namespace {

// Replaces the weights of trained parameters by the average of their moving averages.
void load_ema(const ResumeContext& context, const FoundCheckpoint& found, const Task& task) {
  if (!task.recipe.optimizer.ema) return;
  if (!has_ema(found.manifest)) {
    context.log.warn("optimizer.ema: checkpoint '" + found.folder.string() +
                     "' has no moving average: its weights are taken");
    return;
  }
  NamedTensors targets;
  for (const auto& [name, tensor] : task.model->parameters())
    targets.emplace_back(tensor_name(kEmaPrefix, name), tensor);
  average_replicas(found, *context.team.communicator(), targets, /*average_buffers=*/true);
}

}  // namespace

AveragedModel load_average(const ResumeContext& context, Task& task, const std::string& choice) {
  if (choice == "none") return {.text = "model '" + task.recipe.model.path.string() + "'"};
  const RunFolder folder(task.recipe.output);
  const auto found = find_checkpoint(context, choice, true);
  if (!found) {
    throw SharedError(ExitCode::user_error,
                      "there is no checkpoint in '" + folder.checkpoints().string() +
                          "'. --checkpoint DIR names one elsewhere, --checkpoint none takes the "
                          "model file as it is");
  }
  context.team.agree("same model", [&] { check_same_model(found->manifest, facts_of(task, {})); });
  const double distance =
      average_replicas(*found, *context.team.communicator(),
                       model_tensors(task.model->parameters(), task.model->buffers()),
                       task.recipe.parallel.average_buffers);
  load_ema(context, *found, task);
  const std::string replicas = std::to_string(found->manifest.world_size);
  const std::string text =
      (replicas == "1" ? "the model" : "the average of " + replicas + " replicas") + " in '" +
      found->folder.string() + "'";
  context.log.info(text);
  return {.text = text,
          .step = found->manifest.step,
          .epochs_done = found->manifest.epochs_done,
          .replicas = static_cast<int>(found->manifest.world_size),
          .distance = distance,
          .metrics = found->manifest.metrics,
          .foreign = is_of_run(*found, folder) ? "" : found->folder};
}

}  // namespace decent
