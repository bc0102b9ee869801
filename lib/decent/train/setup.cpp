#include "decent/train/setup.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "decent/config/choices.h"
#include "decent/core/error.h"
#include "decent/data/batch.h"
#include "decent/parallel/replica.h"
#include "decent/train/backward.h"
#include "decent/train/criterion.h"
#include "decent/train/random.h"

namespace decent {
namespace {

std::vector<ForwardInput> forward_inputs(const ModelRecipe& recipe) {
  std::vector<ForwardInput> inputs;
  for (const ModelInput& input : recipe.inputs) inputs.push_back({input.argument, input.field});
  return inputs;
}

std::int64_t total_steps(const TrainRecipe& recipe, std::int64_t updates_per_epoch) {
  if (recipe.steps) return *recipe.steps;
  return recipe.epochs.value() * updates_per_epoch;
}

Schedule make_schedule(const Recipe& recipe, std::int64_t steps) {
  if (recipe.schedule.name == ScheduleName::constant) return constant_lr(recipe.optimizer.lr);
  const std::int64_t after_warmup = std::max<std::int64_t>(1, steps - recipe.schedule.warmup_steps);
  return cosine_warmup({.lr = recipe.optimizer.lr,
                        .warmup_steps = recipe.schedule.warmup_steps,
                        .t_max = recipe.schedule.t_max.value_or(after_warmup),
                        .eta_min = recipe.schedule.eta_min,
                        .warmup_decay = recipe.schedule.warmup_decay});
}

// The model's buffers as they were, whatever a trial does to them.
class BufferGuard {
 public:
  explicit BufferGuard(const TorchScriptModel& model) : buffers_(model.buffers()) {
    for (const auto& [name, buffer] : buffers_) saved_.push_back(buffer.detach().clone());
  }
  BufferGuard(const BufferGuard&) = delete;
  BufferGuard& operator=(const BufferGuard&) = delete;
  ~BufferGuard() {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < saved_.size(); ++i) buffers_[i].second.copy_(saved_[i]);
  }

 private:
  const TorchScriptModel::NamedTensors& buffers_;
  std::vector<at::Tensor> saved_;
};

at::Tensor try_batch(Setup& setup, const DataSet& data, std::span<const std::int64_t> samples) {
  const Batch batch = read_batch(*data.source, data.fields, samples);
  try {
    const at::Tensor output =
        setup.model->forward(setup.inputs, std::span(batch.fields).first(setup.inputs.size()));
    return Criterion(setup.recipe.model.loss).mean_loss(output, batch.fields.back());
  } catch (const UserError& error) {
    throw UserError(data.key + ": " + error.what());
  }
}

void try_training(Setup& setup) {
  setup.model->module().train();
  const at::Tensor loss = try_batch(setup, setup.train, setup.sampler->micro_batch(0, 0));
  if (!loss.requires_grad()) {
    throw UserError("the loss of model '" + setup.model->path().string() +
                    "' does not depend on any of its trainable parameters");
  }
  run_backward(loss);
  for (const auto& [name, parameter] : setup.model->parameters()) {
    const at::Tensor grad = std::exchange(at::Tensor(parameter).mutable_grad(), {});
    if (grad.defined() && grad.layout() != at::kStrided) {
      throw UserError(
          "the gradient of parameter '" + name +
          "' is sparse: export the model with dense gradients (Embedding(.., sparse=False))");
    }
  }
}

void try_evaluation(Setup& setup) {
  const at::NoGradGuard no_grad;
  setup.model->module().eval();
  const std::int64_t size = std::min(setup.eval->source->size(), setup.recipe.data.eval_batch_size);
  try_batch(setup, *setup.eval, evaluation_indices(setup.eval->source->size(), 1, 0, 0, size));
}

void try_model(Setup& setup, int rank) {
  const BufferGuard guard(*setup.model);
  seed_generator(static_cast<std::uint64_t>(setup.recipe.seed), rank, 0, RandomStream::trial);
  if (setup.eval) try_evaluation(setup);
  try_training(setup);
}

void check_model_storage(const TorchScriptModel& model) {
  NamedTensors trained;
  NamedTensors others = model.buffers();
  for (const auto& entry : model.parameters()) {
    (entry.second.requires_grad() ? trained : others).push_back(entry);
  }
  check_storage(trained, others);
}

}  // namespace

Setup prepare(const Recipe& recipe, const Launch& launch) {
  Setup setup;
  setup.recipe = recipe;
  setup.inputs = forward_inputs(recipe.model);
  const int local =
      static_cast<int>(recipe.parallel.local_world_size.value_or(launch.local_world_size));
  setup.topology = make_topology(name_of(recipe.parallel.topology.name), launch.world_size, local);
  setup.model = std::make_unique<TorchScriptModel>(recipe.model.path);
  setup.model->check_signature(setup.inputs);
  check_model_storage(*setup.model);
  setup.train = open_data_set("data.train", recipe.data.train, recipe.model);
  if (recipe.data.eval) setup.eval = open_data_set("data.eval", *recipe.data.eval, recipe.model);
  setup.sampler =
      std::make_unique<Sampler>(BatchPlan{.samples = setup.train.source->size(),
                                          .batch_size = recipe.data.batch_size,
                                          .workers = launch.world_size,
                                          .rank = launch.rank,
                                          .accumulation = recipe.train.grad_accumulation,
                                          .shuffle = recipe.data.shuffle,
                                          .seed = static_cast<std::uint64_t>(recipe.seed)});
  setup.total_steps = total_steps(recipe.train, setup.sampler->updates_per_epoch());
  setup.schedule = make_schedule(recipe, setup.total_steps);
  try_model(setup, launch.rank);
  return setup;
}

}  // namespace decent
