#include "decent/task/task.h"

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/core/torch_dtype.h"
#include "decent/model/formats.h"
#include "decent/model/precision.h"
#include "decent/model/weights.h"
#include "decent/parallel/named_tensors.h"
#include "decent/parallel/storage.h"
#include "decent/task/device.h"
#include "decent/task/learned_in.h"
#include "decent/task/metrics.h"
#include "decent/task/param_groups.h"
#include "decent/task/probabilities.h"
#include "decent/task/scalings.h"
#include "decent/task/statistics.h"

namespace decent {
namespace {

// Limits counts that are multiplied later, so that 64 bits hold the product.
void check_count(const std::string& key, std::int64_t value, std::int64_t most) {
  if (value <= most) return;
  throw UserError(key + ": " + std::to_string(value) +
                  " is more than decent-train can do, which is " + std::to_string(most));
}

void check_counts(const Recipe& recipe) {
  constexpr std::int64_t kMaxSamples = std::numeric_limits<std::int32_t>::max();
  constexpr std::int64_t kMaxWorkers = 1 << 20;
  const BatchSizeRecipe& sizes = recipe.data.batch_size;
  check_count("data.batch_size", sizes.usual, kMaxSamples);
  for (const NamedCounts* named : {&sizes.hosts, &sizes.ranks})
    for (const auto& [name, size] : *named) check_count("data.batch_size", size, kMaxSamples);
  check_count("data.batch_tokens", recipe.data.batch_tokens.value_or(1), kMaxSamples);
  check_count("data.eval_batch_size", recipe.data.eval_batch_size, kMaxSamples);
  check_count("parallel.local_world_size", recipe.parallel.local_world_size.value_or(1),
              kMaxWorkers);
}

std::vector<ForwardInput> forward_inputs(const ModelRecipe& recipe) {
  std::vector<ForwardInput> inputs;
  for (const ModelInput& input : recipe.inputs) inputs.push_back({input.argument, input.field});
  return inputs;
}

void check_model_storage(const Model& model) {
  NamedTensors others = untrained_part(model.parameters());
  others.insert(others.end(), model.buffers().begin(), model.buffers().end());
  check_storage(trained_part(model.parameters()), others, model.base());
}

// Tensors that cannot be stored would otherwise only show at the first checkpoint.
void check_can_be_saved(const Model& model) {
  NamedTensors tensors = model.all_parameters();
  tensors.insert(tensors.end(), model.buffers().begin(), model.buffers().end());
  for (const auto& [name, tensor] : tensors) {
    if (tensor.layout() == at::kStrided && find_dtype(tensor.scalar_type())) continue;
    throw UserError("model '" + model.path().string() + "': '" + name + "' is " +
                    dtype_text(tensor.scalar_type()) +
                    (tensor.layout() == at::kStrided ? "" : " and not dense") +
                    ", which safetensors files cannot hold, so that it could be neither saved "
                    "nor exported.\nA complex tensor can be kept as torch.view_as_real(tensor)");
  }
}

WeightsChoice choice_of(const ModelRecipe& recipe) {
  WeightsChoice choice{.ignore = recipe.weights_ignore, .rename = {}};
  for (const PrefixRecipe& each : recipe.weights_rename)
    choice.rename.emplace_back(each.from, each.to);
  if (recipe.weights || (choice.ignore.empty() && choice.rename.empty())) return choice;
  throw UserError(
      std::string(choice.ignore.empty() ? "model.weights_rename" : "model.weights_ignore") +
      ": it needs model.weights");
}

// An opened model, and facts that opening it showed.
struct OpenedTask {
  std::unique_ptr<Model> model;
  std::vector<std::string> weights_left;
  std::vector<std::string> frozen_statistics;
  std::optional<LoraFacts> lora;
};

// The names of parameters that need no gradient, as globs.
std::vector<std::string> frozen_names(Model& model, const ModelRecipe& recipe) {
  if (model.adapters() == nullptr) return recipe.freeze;
  std::vector<std::string> names;
  for (const auto& [name, weight] : model.base()) {
    const bool is_adapted = std::ranges::any_of(
        model.adapters()->all(), [&, &name = name](const auto& each) { return each.name == name; });
    if (!is_adapted) names.push_back(name);
  }
  return names;
}

std::optional<LoraFacts> adapted(Model& model, const Recipe& recipe) {
  if (!recipe.model.lora) return std::nullopt;
  if (!recipe.model.freeze.empty()) {
    throw UserError(
        "model.freeze: with model.lora nothing trains but adapters and what "
        "model.lora.train names, so there is nothing to freeze");
  }
  return add_adapters(model, *recipe.model.lora, static_cast<std::uint64_t>(recipe.seed));
}

OpenedTask open_checked(const Recipe& recipe, std::span<const ForwardInput> inputs) {
  OpenedTask opened;
  auto model = std::make_unique<Model>(open_model(recipe.model.path, import_options(recipe.model)));
  if (!recipe.model.lora) model->check_trainable();
  if (recipe.amp.dtype != AmpDType::off) {
    model->set_autocast(recipe.amp.dtype == AmpDType::bf16 ? at::kBFloat16 : at::kHalf);
  }
  const WeightsChoice choice = choice_of(recipe.model);
  if (recipe.model.weights)
    opened.weights_left = load_weights(*model, *recipe.model.weights, choice);
  freeze_parameters(model->parameters(), recipe.model.freeze);
  opened.lora = adapted(*model, recipe);
  if (recipe.model.freeze_statistics) opened.frozen_statistics = model->freeze_statistics();
  model->origin().check_gradients(frozen_names(*model, recipe.model));
  check_param_groups(model->parameters(), recipe.optimizer.param_groups);
  model->check_signature(inputs);
  check_model_storage(*model);
  check_can_be_saved(*model);
  if (recipe.model.memory_format == MemoryFormat::channels_last) model->use_channels_last();
  opened.model = std::move(model);
  return opened;
}

// Each metric must fit the loss, and those that decide something must be measured.
void check_metrics(const Recipe& recipe) {
  measured_metrics(recipe);
  if (recipe.checkpoint.keep_best)
    check_measured(recipe, "checkpoint.keep_best", *recipe.checkpoint.keep_best);
  if (recipe.train.stop) check_measured(recipe, "train.stop.metric", recipe.train.stop->metric);
}

// The evaluations and checkpoints among which a run chooses must be made while it trains.
void check_cadences(const Recipe& recipe) {
  const EvalRecipe& eval = recipe.eval;
  const CheckpointRecipe& saves = recipe.checkpoint;
  const bool evaluates = eval.every_steps || eval.every_epochs;
  for (const auto& [asked, key] :
       {std::pair(recipe.train.stop.has_value(), "train.stop"),
        std::pair(saves.keep_best.has_value(), "checkpoint.keep_best")}) {
    if (asked && !evaluates)
      throw UserError(std::string(key) +
                      " needs evaluations while the run trains: eval.every_steps "
                      "and eval.every_epochs are null");
  }
  if (saves.keep_best && !saves.every_steps && !saves.every_epochs)
    throw UserError(
        "checkpoint.keep_best: no checkpoints are saved of which one could be kept: "
        "checkpoint.every_steps and checkpoint.every_epochs are null");
}

// Opens the sources that `purpose` reads. What is learned of data.train holds for the others.
void open_data(Task& task, Purpose purpose, const LearnedData* known) {
  const Recipe& recipe = task.recipe;
  if (known != nullptr) task.learned = *known;
  if (purpose == Purpose::training) {
    task.train = open_data_set("data.train", recipe, DataUse::training, known);
    task.order = weighted_order(recipe, *task.train);
    task.token_batches = token_batches(recipe, *task.train);
    if (known == nullptr) {
      task.learned = learned_of(task.train->samples->source(), recipe.data);
    } else if (!known->is_whole() && known->classes.empty()) {
      task.learned.classes = task.train->samples->source().classes();
      task.learned.where = "data.train";
    }
  }
  if (recipe.data.eval && reads_eval(purpose))
    task.eval = open_data_set("data.eval", recipe, DataUse::evaluation, &task.learned);
  if (predicts(purpose))
    task.predict = open_data_set("data.predict", recipe, DataUse::prediction, &task.learned);
}

void check_prediction(const Recipe& recipe, Purpose purpose) {
  if (!predicts(purpose)) return;
  if (!recipe.data.predict) {
    throw UserError(
        "--predict: data.predict is null, so that there is nothing to predict on; it is a source "
        "like data.eval, and needs no target:\n"
        "--set 'data.predict={format: npz, path: new.npz}'");
  }
  if (Criterion(recipe.model).needs_target()) return;
  throw UserError(
      "--predict: with model.loss 'output' the model gives its loss and nothing else, which says "
      "nothing of samples without a target; name an output that does (model.output), and the loss "
      "that goes with it");
}

void check_normalizes_once(const Recipe& recipe) {
  const DataRecipe& data = recipe.data;
  for (const auto& [key, list] :
       {std::pair("data.transforms", &data.transforms),
        std::pair(data.key_of_evaluation(), &data.transforms_of_evaluation())}) {
    const bool again = std::ranges::any_of(
        *list, [](const TransformRecipe& each) { return each.name == "normalize"; });
    if (!again) continue;
    throw UserError(std::string(key) + ": '" + recipe.model.path.string() +
                    "' normalizes by itself, as it was written with data.export_transforms; leave "
                    "normalize and export_transforms out");
  }
}

void check_classes_of(const Task& task) {
  if (!task.eval) return;
  check_classes(*task.eval, task.recipe.data.eval.value(), task.learned);
}

}  // namespace

Task open_task(const Recipe& given, const Launch& launch, Purpose purpose,
               const LearnedData* known) {
  check_counts(given);
  check_metrics(given);
  check_prediction(given, purpose);
  if (purpose == Purpose::training) check_cadences(given);
  const bool reads_data = purpose != Purpose::model || given.data.export_transforms;
  const bool model_normalizes = normalizes_by_itself(given.model.path);
  if (model_normalizes && reads_data) check_normalizes_once(given);
  const Recipe recipe = reads_data ? with_statistics(given) : given;
  if (reads_data) check_eval_transforms(recipe);
  // Before the first backward: autograd starts a thread for each device that it then knows of.
  const DeviceChoice device = device_for(recipe, launch, purpose);
  set_fast_math(recipe.model.fast_math);
  std::vector<ForwardInput> inputs = forward_inputs(recipe.model);
  OpenedTask opened = open_checked(recipe, inputs);
  opened.model->move_to(device.device);
  Task task{.recipe = recipe,
            .device = device,
            .inputs = std::move(inputs),
            .model = std::move(opened.model),
            .criterion = Criterion(recipe.model),
            .train = std::nullopt,
            .eval = std::nullopt,
            .weights_left = std::move(opened.weights_left),
            .frozen_statistics = std::move(opened.frozen_statistics),
            .lora = std::move(opened.lora),
            .model_normalizes = model_normalizes};
  open_data(task, purpose, known);
  check_classes_of(task);
  task.scaling = exported_scaling(task);
  return task;
}

}  // namespace decent
