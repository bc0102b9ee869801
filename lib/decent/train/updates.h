#pragma once
// From the recipe to the update of weights.

#include <memory>
#include <string>

#include "decent/config/update_options.h"
#include "decent/optim/bucket_update.h"
#include "decent/parallel/training_options.h"
#include "decent/task/param_groups.h"
#include "decent/train/methods.h"
#include "decent/train/run.h"

namespace decent {

std::shared_ptr<const BucketUpdate> make_update(const OptimizerRecipe& recipe);

UpdateTime update_time(const Run& run);

/// `Options` whose fields of TrainingOptions are set from the recipe of `run`.
template <typename Options>
Options options_of(const Run& run, const TrainingSigns& signs) {
  const Recipe& recipe = run.task.recipe;
  Options options;
  options.update = make_update(recipe.optimizer);
  options.schedule = run.plan.rates.schedule;
  options.settings = [optimizer = recipe.optimizer](const std::string& name,
                                                    const at::Tensor& parameter) {
    return settings_of(optimizer, name, parameter);
  };
  options.bucket_mb = recipe.parallel.bucket_mb;
  options.average_buffers = recipe.parallel.average_buffers;
  options.clip = clip_options(recipe.parallel);
  options.update_time = update_time(run);
  options.loss_scaler = loss_scaler_options(recipe.amp);
  options.ema = recipe.optimizer.ema;
  options.trace = signs.trace;
  options.warn = signs.warn;
  return options;
}

/// Whether buckets are updated while backward runs.
bool updates_in_backward(const Run& run);

/// Whether the exchange works only between workers whose weights are close.
bool needs_near_copies(const ParallelRecipe& recipe);

/// The topology's name, or "custom".
std::string topology_name(const TopologyRecipe& recipe);

}  // namespace decent
