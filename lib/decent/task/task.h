#pragma once
// What a worker trains or evaluates: a model, data, and the loss that joins them.

#include <memory>
#include <optional>
#include <vector>

#include "decent/comm/device_choice.h"
#include "decent/comm/launch.h"
#include "decent/config/recipe.h"
#include "decent/model/file_scaling.h"
#include "decent/model/model.h"
#include "decent/task/criterion.h"
#include "decent/task/device.h"
#include "decent/task/lora.h"
#include "decent/task/sampling.h"
#include "decent/task/sources.h"

namespace decent {

/// Everything of a recipe that one worker can open by itself, complete from the start. Sources of
/// data that the purpose does not need are empty.
struct Task {
  Recipe recipe;
  DeviceChoice device;  // of the model
  std::vector<ForwardInput> inputs;
  std::unique_ptr<Model> model;
  Criterion criterion;
  std::optional<DataSet> train;
  std::optional<DataSet> eval;
  std::optional<DataSet> predict = {};              // without a target
  std::shared_ptr<const WeightedOrder> order = {};  // of data.sampling; null: each sample once
  std::shared_ptr<const TokenBatches> token_batches = {};  // of data.batch_tokens; null: none
  LearnedData learned = {};                                // learned of data.train, see open_task
  FileScaling scaling = {};                                // of written models: exported_scaling()
  std::vector<std::string> weights_left = {};       // tensors that model.weights_ignore keeps
  std::vector<std::string> frozen_statistics = {};  // modules; see Model::freeze_statistics
  std::optional<LoraFacts> lora = {};               // of model.lora
  bool model_normalizes = false;                    // its program does, see normalizes_by_itself
  LossDoubts doubts = {};                           // about batches after the first ones
};

/// Chooses the device, then opens model and data for `purpose`. `known`: what the run that is
/// resumed or evaluated has learned of its training data, which determines how all data is read;
/// null: it is learned from data.train, if opened. Throws UserError. Talks to no other worker.
Task open_task(const Recipe& recipe, const Launch& launch, Purpose purpose,
               const LearnedData* known = nullptr);

}  // namespace decent
