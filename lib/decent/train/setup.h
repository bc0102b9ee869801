#pragma once
// Everything that a worker opens and checks by itself before it talks to the others, so that
// mistakes show at once.

#include <memory>
#include <optional>
#include <vector>

#include "decent/comm/device_choice.h"
#include "decent/comm/launch.h"
#include "decent/config/recipe.h"
#include "decent/core/membership.h"
#include "decent/data/sampler.h"
#include "decent/model/model.h"
#include "decent/optim/schedule.h"
#include "decent/parallel/decentralized_options.h"
#include "decent/report/loss_watch.h"
#include "decent/task/sources.h"
#include "decent/topology/topology.h"

namespace decent {

struct Setup {
  Recipe recipe;
  DeviceChoice device;  // where the model is
  std::vector<ForwardInput> inputs;
  std::unique_ptr<Model> model;
  DataSet train;  // without a source where the setup is not for training; no plan then either
  std::optional<DataSet> eval;
  std::vector<Phase> topology;
  std::unique_ptr<Sampler> sampler;
  std::string run_id;            // of the run that this is a part of, once that is known
  bool goes_on = false;          // from a checkpoint
  std::int64_t first_step = 0;   // updates done before it
  std::int64_t total_steps = 0;  // updates of the whole run
  Schedule schedule;
  UpdateTime update_time = UpdateTime::in_backward;
  bool weights_needed_later = false;  // the model's reason for after_backward
  /// Whether the output looks like probabilities in all batches that were tried, where the loss
  /// makes such itself; see probabilities.h.
  std::optional<bool> gives_probabilities;
  /// What the first batch showed, on this worker, where the setup is for training.
  UntrainedLoss untrained_loss = {};
  std::string divergence = {};                     // see divergence_text; empty: a finite loss
  std::vector<std::string> without_gradient = {};  // parameters to train that it gave none
};

/// What a setup is for: only training needs the training data and a topology, only training and
/// evaluation need any data.
enum class Purpose { training, evaluation, model };

/// Chooses the device, opens model and data, makes the plan for this worker among `workers`, and
/// tries one batch of each source through the model (whose buffers are as before after it). Throws
/// UserError.
Setup prepare(const Recipe& recipe, const Launch& launch, const Membership& workers,
              Purpose purpose = Purpose::training);

/// Makes the plan anew for a run that goes on after `step` updates, which ended at `position` of
/// the training data: sampler, number of steps, schedule. Throws UserError.
void plan_to_go_on(Setup& setup, const Membership& workers, int rank, std::int64_t step,
                   DataPosition position);

}  // namespace decent
