#include "decent/train/load_state.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <map>
#include <string>

#include "decent/parallel/tensor_names.h"
#include "decent/resume/replica_loader.h"

namespace decent {
namespace {

// Parameters that the checkpoint's run trained and this one does not.
NamedTensors newly_frozen(const FoundCheckpoint& found, const Task& task, int rank) {
  NamedTensors frozen;
  const ReplicaFile& replica = found.own.at(rank);
  for (const auto& [name, tensor] : untrained_part(task.model->parameters())) {
    if (replica.find(update_count_name(name)) != nullptr) frozen.emplace_back(name, tensor);
  }
  return model_tensors(frozen, {});
}

void begin_ema(const NamedTensors& state) {
  const at::NoGradGuard no_grad;
  const std::map<std::string, at::Tensor> by_name(state.begin(), state.end());
  for (const auto& [name, average] : part_of(state, kEmaPrefix))
    average.copy_(by_name.at(tensor_name(kModelPrefix, name)));
}

}  // namespace

void load_state(FoundCheckpoint& found, Communicator& communicator, const Task& task,
                const NamedTensors& state, bool from_average) {
  const AverageRules rules{.average_buffers = task.recipe.parallel.average_buffers};
  const auto load = [&](const NamedTensors& targets) {
    if (from_average) {
      average_replicas(found, communicator, targets, rules);
    } else {
      load_replica(found, communicator, targets);
    }
  };
  NamedTensors averages = state;
  const auto first_average = std::stable_partition(
      averages.begin(), averages.end(),
      [](const auto& tensor) { return !tensor.first.starts_with(kEmaPrefix); });
  load({averages.begin(), first_average});
  averages.erase(averages.begin(), first_average);
  // No exchange would ever bring the workers' copies of these parameters together again.
  if (!from_average && !found.manifest.copies_alike())
    average_replicas(found, communicator, newly_frozen(found, task, communicator.rank()), rules);
  begin_ema(state);  // of parameters whose average the checkpoint lacks
  load(averages);
}

}  // namespace decent
