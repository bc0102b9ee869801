#include "decent/train/setup.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "decent/config/choices.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"
#include "decent/data/batch.h"
#include "decent/model/formats.h"
#include "decent/model/weights.h"
#include "decent/parallel/named_tensors.h"
#include "decent/parallel/storage.h"
#include "decent/task/backward.h"
#include "decent/task/criterion.h"
#include "decent/task/device.h"
#include "decent/task/layout_advice.h"
#include "decent/task/metrics.h"
#include "decent/task/non_finite.h"
#include "decent/task/param_groups.h"
#include "decent/task/predict.h"
#include "decent/task/probabilities.h"
#include "decent/task/random.h"
#include "decent/task/untrained_loss.h"

namespace decent {
namespace {

// Counts that are multiplied with one another further on, where 64 bits must hold the product.
void check_count(const std::string& key, std::int64_t value, std::int64_t most) {
  if (value <= most) return;
  throw UserError(key + ": " + std::to_string(value) +
                  " is more than decent-train can do, which is " + std::to_string(most));
}

void check_counts(const Recipe& recipe) {
  constexpr std::int64_t kMostSamples = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t kMostWorkers = 1 << 20;
  check_count("data.batch_size", recipe.data.batch_size, kMostSamples);
  check_count("data.eval_batch_size", recipe.data.eval_batch_size, kMostSamples);
  check_count("parallel.local_world_size", recipe.parallel.local_world_size.value_or(1),
              kMostWorkers);
}

std::vector<ForwardInput> forward_inputs(const ModelRecipe& recipe) {
  std::vector<ForwardInput> inputs;
  for (const ModelInput& input : recipe.inputs) inputs.push_back({input.argument, input.field});
  return inputs;
}

std::int64_t total_steps(const TrainRecipe& recipe, const Sampler& sampler) {
  if (recipe.steps) return *recipe.steps;
  const std::int64_t steps = sampler.updates_until(recipe.epochs.value());
  if (steps == std::numeric_limits<std::int64_t>::max()) {
    throw UserError("train.epochs: " + counted(*recipe.epochs, "epoch") + " of " +
                    counted(sampler.updates_per_epoch(), "update") +
                    " are more than can be counted");
  }
  return steps;
}

Schedule schedule_of(const Recipe& recipe, std::int64_t steps) {
  const std::int64_t after_warmup = std::max<std::int64_t>(1, steps - recipe.schedule.warmup_steps);
  return make_schedule(name_of(recipe.schedule.name),
                       {.lr = recipe.optimizer.lr,
                        .warmup_steps = recipe.schedule.warmup_steps,
                        .t_max = recipe.schedule.t_max.value_or(after_warmup),
                        .eta_min = recipe.schedule.eta_min,
                        .warmup_decay = recipe.schedule.warmup_decay});
}

std::vector<Phase> topology_of(const TopologyRecipe& recipe, int workers, int local) {
  if (recipe.phases.empty()) return make_topology(recipe.name, workers, local);
  std::vector<Phase> phases;
  for (const std::vector<EdgeRecipe>& edges : recipe.phases) {
    Phase& phase = phases.emplace_back();
    for (const EdgeRecipe& edge : edges) {
      // Ranks that do not fit an int do not exist either; the check below says so.
      std::vector<int> ranks;
      for (std::int64_t rank : edge.ranks) {
        ranks.push_back(static_cast<int>(std::clamp<std::int64_t>(rank, -1, 1 << 30)));
      }
      std::sort(ranks.begin(), ranks.end());
      phase.push_back({std::move(ranks), edge.weight});
    }
  }
  try {
    validate_topology(phases, workers);
  } catch (const UserError& error) {
    throw UserError(std::string("parallel.topology: ") + error.what());
  }
  return phases;
}

// The model's buffers as they were, whatever a trial does to them. A trial that fails leaves no
// model; nothing may be asked of a GPU then, which the failure may have made useless.
class BuffersBefore {
 public:
  explicit BuffersBefore(const Model& model) : buffers_(model.buffers()) {
    for (const auto& [name, buffer] : buffers_) saved_.push_back(buffer.detach().clone());
  }
  void restore() const {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < saved_.size(); ++i) buffers_[i].second.copy_(saved_[i]);
  }

 private:
  const Model::NamedTensors& buffers_;
  std::vector<at::Tensor> saved_;
};

// A batch and what came of it.
struct Trial {
  Batch batch;
  Prediction prediction;
  MeanLoss loss;
};

Trial try_batch(Setup& setup, const DataSet& data, std::span<const std::int64_t> samples) {
  const Batch batch = read_batch(*data.source, data.fields, samples);
  const Criterion criterion(setup.recipe.model);
  Prediction prediction;
  try {
    prediction = predict(*setup.model, setup.inputs, criterion, data, batch);
  } catch (const UserError& error) {
    throw UserError(data.key + ": " + error.what());
  }
  look_for_probabilities(prediction.output, setup);
  try {
    return {batch, prediction, criterion.mean_loss(prediction.output, prediction.target)};
  } catch (const UserError& error) {
    std::vector<std::string> lines = layout_advice(setup);
    lines.insert(lines.begin(), data.key + ": " + error.what());
    throw UserError(join(lines, "\n"));
  }
}

// Marks a parameter as written once its gradient is there, which is what an update in backward
// does.
class MarkWritten : public torch::autograd::PostAccumulateGradHook {
 public:
  void operator()(const at::Tensor& parameter) override {
    parameter.unsafeGetTensorImpl()->bump_version();
  }
};

// What a run would find in its first step, or warn of at its end.
void note_loss(Setup& setup, const Trial& trial) {
  const double loss = trial.loss.value;
  setup.untrained_loss =
      untrained_loss(setup.recipe.model, setup.train, trial.batch, trial.prediction, loss);
  const bool may_be_overflow = setup.recipe.amp.dtype == AmpDType::fp16;
  if (std::isfinite(loss) || may_be_overflow) return;
  setup.divergence = divergence_text(
      setup, {.read = trial.batch, .output = trial.prediction.output, .loss = loss});
}

void try_backward(Setup& setup, bool updates_in_backward) {
  Trial trial = try_batch(setup, setup.train, setup.sampler->micro_batch(0, 0));
  note_loss(setup, trial);
  trial.prediction = {};  // memory that a step of training does not hold on to either
  const at::Tensor& loss = trial.loss.tensor;
  if (!loss.requires_grad()) {
    throw UserError("the loss of model '" + setup.model->path().string() +
                    "' does not depend on any of its trainable parameters");
  }
  for (const auto& [name, parameter] : trained_part(setup.model->parameters())) {
    torch::autograd::impl::set_post_acc_grad_hooks(
        parameter, updates_in_backward ? std::make_unique<MarkWritten>() : nullptr);
  }
  run_backward(loss);
  setup.model->settle_buffers();
}

void drop_trial_gradients(Setup& setup) {
  for (const auto& [name, parameter] : trained_part(setup.model->parameters())) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
    const at::Tensor grad = std::exchange(at::Tensor(parameter).mutable_grad(), {});
    if (grad.defined()) {
      check_dense(name, grad);
    } else {
      setup.without_gradient.push_back(name);
    }
  }
}

void refuse_in_backward(const Setup& setup) {
  if (setup.recipe.parallel.update != UpdateMode::in_backward) return;
  throw UserError("the model '" + setup.model->path().string() +
                  "' uses a weight after its gradient is complete (through detach() or .data), so "
                  "that it cannot be updated while backward runs.\nSet parallel.update: "
                  "after_backward, or auto");
}

void try_training(Setup& setup) {
  setup.model->module().train();
  const ParallelRecipe& parallel = setup.recipe.parallel;
  // A weight read through .data escapes autograd's bookkeeping, so that a trial would not show it.
  bool later = setup.model->reads_data_of_tensors();
  const bool after = parallel.update == UpdateMode::after_backward;
  try {
    try_backward(setup, !later && !after);
  } catch (const WeightNeededLater&) {
    later = true;
    try_backward(setup, false);
  }
  drop_trial_gradients(setup);
  if (later) refuse_in_backward(setup);
  setup.weights_needed_later = later;
  setup.update_time = later || after ? UpdateTime::after_backward : UpdateTime::in_backward;
}

// The two batch sizes that this worker will evaluate: a full one, and the last.
void try_evaluation(Setup& setup, const Membership& workers, int rank) {
  const at::NoGradGuard no_grad;
  setup.model->module().eval();
  const std::int64_t samples = setup.eval->source->size();
  const std::int64_t own = evaluation_size(samples, workers, rank);
  const std::int64_t full = std::min(own, setup.recipe.data.eval_batch_size);
  if (own == 0) return;
  for (std::int64_t first : std::set<std::int64_t>{0, (own - 1) / full * full}) {
    try_batch(setup, *setup.eval, evaluation_indices(samples, workers, rank, first, full));
    setup.model->settle_buffers();
  }
}

void try_model(Setup& setup, const Membership& workers, int rank, Purpose purpose) {
  const BuffersBefore buffers(*setup.model);
  seed_generator(static_cast<std::uint64_t>(setup.recipe.seed), rank, 0, RandomStream::trial,
                 setup.model->device());
  if (setup.eval) try_evaluation(setup, workers, rank);
  if (purpose == Purpose::training) try_training(setup);
  if (setup.model->gives_logits() && purpose != Purpose::model) {
    const DataRecipe& data = setup.recipe.data;
    purpose == Purpose::training ? check_logits(setup, setup.train, data.batch_size)
                                 : check_logits(setup, *setup.eval, data.eval_batch_size);
  }
  buffers.restore();
}

void check_model_storage(const Model& model) {
  NamedTensors others = untrained_part(model.parameters());
  others.insert(others.end(), model.buffers().begin(), model.buffers().end());
  check_storage(trained_part(model.parameters()), others);
}

// What cannot be stored would only show when the first checkpoint is saved.
void check_can_be_saved(const Model& model) {
  for (const auto* tensors : {&model.parameters(), &model.buffers()}) {
    for (const auto& [name, tensor] : *tensors) {
      if (tensor.layout() == at::kStrided && find_dtype(tensor.scalar_type())) continue;
      throw UserError("model '" + model.path().string() + "': '" + name + "' is " +
                      dtype_text(tensor.scalar_type()) +
                      (tensor.layout() == at::kStrided ? "" : " and not dense") +
                      ", which safetensors files cannot hold, so that it could be neither saved "
                      "nor exported.\nA complex tensor can be kept as torch.view_as_real(tensor)");
    }
  }
}

void open_model(Setup& setup) {
  const Recipe& recipe = setup.recipe;
  setup.model =
      std::make_unique<Model>(decent::open_model(recipe.model.path, import_options(recipe.model)));
  if (recipe.amp.dtype != AmpDType::off) {
    setup.model->set_autocast(recipe.amp.dtype == AmpDType::bf16 ? at::kBFloat16 : at::kHalf);
  }
  if (recipe.model.weights) load_weights(*setup.model, *recipe.model.weights);
  freeze_parameters(setup.model->parameters(), recipe.model.freeze);
  setup.model->origin().check_gradients(recipe.model.freeze);
  check_param_groups(setup.model->parameters(), recipe.optimizer.param_groups);
  setup.model->check_signature(setup.inputs);
  check_model_storage(*setup.model);
  check_can_be_saved(*setup.model);
  if (recipe.model.memory_format == MemoryFormat::channels_last) {
    setup.model->use_channels_last();
  }
  setup.model->move_to(setup.device.device);
}

// Each metric must fit the loss, and the one that chooses the best checkpoint must be measured.
void check_metrics(const Recipe& recipe) {
  std::vector<std::string> measured = metrics_of(recipe);
  measured.insert(measured.begin(), "loss");
  const std::optional<std::string>& best = recipe.checkpoint.keep_best;
  if (!best || std::find(measured.begin(), measured.end(), *best) != measured.end()) return;
  throw UserError("checkpoint.keep_best: evaluations do not measure " + *best +
                  " (eval.metrics); they measure " + join(measured));
}

void plan_run(Setup& setup, const Membership& workers, int rank, std::int64_t step,
              DataPosition position) {
  const Recipe& recipe = setup.recipe;
  setup.sampler = std::make_unique<Sampler>(BatchPlan{
      .samples = setup.train.source->size(),
      .batch_size = recipe.data.batch_size,
      .workers = workers,
      .rank = rank,
      .accumulation = recipe.train.grad_accumulation,
      .shuffle = recipe.data.shuffle,
      .seed = static_cast<std::uint64_t>(recipe.seed),
      .first_update = step,
      .first_position = position,
      .remedy = "lower data.batch_size or train.grad_accumulation, or use fewer workers"});
  setup.first_step = step;
  setup.total_steps = total_steps(recipe.train, *setup.sampler);
  setup.schedule = schedule_of(recipe, setup.total_steps);
}

}  // namespace

void plan_to_go_on(Setup& setup, const Membership& workers, int rank, std::int64_t step,
                   DataPosition position) {
  plan_run(setup, workers, rank, step, position);
  setup.goes_on = true;
}

Setup prepare(const Recipe& recipe, const Launch& launch, const Membership& workers,
              Purpose purpose) {
  const bool training = purpose == Purpose::training;
  Setup setup;
  check_counts(recipe);
  setup.recipe = recipe;
  // Before the first backward: autograd starts a thread for each device that it then knows of.
  setup.device = device_for(recipe, launch, purpose);
  setup.inputs = forward_inputs(recipe.model);
  const int local =
      static_cast<int>(recipe.parallel.local_world_size.value_or(launch.local_world_size));
  if (training) setup.topology = topology_of(recipe.parallel.topology, launch.world_size, local);
  open_model(setup);
  check_metrics(setup.recipe);
  if (training) setup.train = open_data_set("data.train", recipe.data.train, recipe.model);
  if (recipe.data.eval && purpose != Purpose::model) {
    setup.eval = open_data_set("data.eval", *recipe.data.eval, recipe.model);
  }
  if (training) plan_run(setup, workers, launch.rank, 0, {});
  try_model(setup, workers, launch.rank, purpose);
  return setup;
}

}  // namespace decent
