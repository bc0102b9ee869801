#pragma once
// Everything that a worker opens and checks by itself before it talks to the others, so that
// mistakes show at once.

#include <memory>
#include <optional>
#include <vector>

#include "decent/comm/launch.h"
#include "decent/config/recipe.h"
#include "decent/data/sampler.h"
#include "decent/model/torchscript_model.h"
#include "decent/optim/schedule.h"
#include "decent/parallel/decentralized_data_parallel.h"
#include "decent/topology/topology.h"
#include "decent/train/sources.h"

namespace decent {

struct Setup {
  Recipe recipe;
  std::vector<ForwardInput> inputs;
  std::unique_ptr<TorchScriptModel> model;
  DataSet train;
  std::optional<DataSet> eval;
  std::vector<Phase> topology;
  std::unique_ptr<Sampler> sampler;
  std::int64_t total_steps = 0;  // updates of the whole run
  Schedule schedule;
  UpdateTime update_time = UpdateTime::in_backward;
  bool weights_needed_later = false;  // the model's reason for after_backward
};

/// Opens model and data, makes the plan, and tries one batch of each source through the model
/// (whose buffers are as before after it). Throws UserError.
Setup prepare(const Recipe& recipe, const Launch& launch);

}  // namespace decent
