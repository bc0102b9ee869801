#include "decent/config/schema.h"

#include "decent/config/option_keys.h"

namespace decent::config {
namespace {

using enum OnResume;

Table<ModelRecipe> make_model_table() {
  using R = ModelRecipe;
  Table<R> table;
  table.required("path", &R::path)
      .may_differ()
      .on_resume(silent)
      .doc("Model file: `.pt` (TorchScript), `.onnx` or `.pt2` (torch.export).");
  table.key("inputs", &R::inputs)
      .doc("Data fields in the order of forward's arguments, or `{input name: field}`.");
  table.key("target", &R::target)
      .changes_measure()
      .doc("Data field that the loss compares the output with.");
  table.key("output", &R::output)
      .changes_measure()
      .doc("Which output of the model to use, by name or index, if it has several.");
  table.key("loss", &R::loss)
      .changes_measure()
      .one_of([](const Names& names) { return names_in(names.losses); })
      .doc("Loss function; with `output`, the model's forward returns the loss itself.");
  add_rows(table, &Names::losses, &R::loss_options, {.changes_measure = true});
  table.key("ignore_index", &R::ignore_index)
      .changes_measure()
      .doc("Target class that losses of classes leave out.");
  table.key("class_dim", &R::class_dim)
      .changes_measure()
      .doc("Dimension of the classes in the output.");
  table.key("loss_weights", &R::loss_weights)
      .changes_measure()
      .range(at_least(0))
      .doc(
          "Weight of each class in cross_entropy, nll and focal; null: all classes weigh the "
          "same.");
  table.key("memory_format", &R::memory_format)
      .doc("Memory layout of images in parameters and inputs.");
  table.key("weights", &R::weights)
      .may_differ()
      .on_resume(silent)
      .doc(
          "File of weights to start from: `.safetensors`, or `.pt`, `.pth`, `.bin` written by "
          "`torch.save` or `torch.jit.save`. No code in it is run.");
  table.key("weights_ignore", &R::weights_ignore)
      .doc(
          "Globs over the model's tensor names. Matching tensors are not taken from the file of "
          "weights; they keep the values of the model's own file.");
  table.key("weights_rename", &R::weights_rename)
      .doc("Beginnings of names in the file of weights, and what replaces each of them.");
  table.key("freeze", &R::freeze)
      .shapes_exchange()  // frozen parameters leave the buckets, which moves the slices
      .doc("Globs over parameters that do not train.");
  table.key("unfreeze", &R::unfreeze)
      .shapes_exchange()
      .doc(
          "Globs over tensors of an `.onnx` file that train although its import took them for "
          "constants.");
  table.key("freeze_statistics", &R::freeze_statistics)
      .doc(
          "Batch norms whose parameters are frozen keep their running statistics and normalize by "
          "them in training.");
  table.key("lora", &R::lora)
      .may_differ()  // a path; the rest shows in the parameters and in a topic of its own
      .on_resume(silent)
      .doc(
          "Low-rank adapters (LoRA) of the weights that `match` names train instead of all "
          "parameters; null: none.");
  table.key("export_mode", &R::export_mode)
      .on_resume(silent)
      .doc(
          "How an `.onnx` or `.pt2` file is written: `eval` for inference, without dropout, noise "
          "and updates of statistics; `train` to be trained again.");
  table.key("device", &R::device)
      .may_differ()
      .on_resume(silent)
      .doc(
          "Where the model runs; `auto`: a GPU if every worker of the machine can have one of its "
          "own, else the CPU.");
  table.key("fast_math", &R::fast_math)
      .doc(
          "On a GPU: compute float32 matrix products, convolutions and RNNs in TF32, and let cuDNN "
          "try its algorithms and take the fastest.");
  return table;
}

Table<DataRecipe> make_data_table() {
  using R = DataRecipe;
  Table<R> table;
  table.required("train", &R::train)
      .may_differ()
      .on_resume(silent)
      .doc("Source of the training data.");
  table.key("eval", &R::eval)
      .may_differ()
      .on_resume(silent)
      .doc("Source of the evaluation data; null: none.");
  table.key("predict", &R::predict)
      .may_differ()
      .on_resume(silent)
      .doc("Source of the data for `--predict`; it needs no target. null: none.");
  table.key("batch_size", &R::batch_size)
      .range(at_least(1))
      .on_resume(same)
      .doc(
          "Samples per worker and micro-batch; a mapping gives hosts or workers sizes of their "
          "own.");
  table.key("batch_tokens", &R::batch_tokens)
      .range(at_least(1))
      .on_resume(same)
      .doc(
          "Tokens per worker and micro-batch, with padding, for samples of different lengths, in "
          "place of batch_size; null: batches have batch_size samples.");
  table.key("eval_batch_size", &R::eval_batch_size)
      .range(at_least(1))
      .doc("Samples per worker and batch in evaluation.");
  table.key("shuffle", &R::shuffle)
      .on_resume(same)
      .doc("Shuffle the training data, anew each epoch.");
  table.key("sampling", &R::sampling)
      .on_resume(same)
      .doc(
          "Draw the samples of each epoch of training by weights, in place of `shuffle`; null: "
          "each sample comes once an epoch.");
  table.key("prefetch", &R::prefetch)
      .range(within(0, 1024))
      .may_differ()
      .on_resume(silent)
      .doc("Number of batches that are read ahead.");
  table.key("threads", &R::threads)
      .range(within(1, 256))
      .may_differ()
      .on_resume(silent)
      .doc("Threads of each worker that read, decode and transform batches.");
  table.key("on_error", &R::on_error)
      .doc(
          "What happens when a sample cannot be read: `fail` ends the run, `skip` leaves the "
          "sample out.");
  table.key("transforms", &R::transforms)
      .doc(
          "Transforms that are applied to each sample, in this order, before samples are put into "
          "a batch.");
  table.key("eval_transforms", &R::eval_transforms)
      .changes_measure()
      .doc(
          "The transforms of data.eval and data.predict, none of them random; null: those of "
          "`transforms`, without its random ones.");
  table.key("export_transforms", &R::export_transforms)
      .doc(
          "Store `normalize` in model.pt: inputs are normalized first, and outputs are brought "
          "back to the target's units last.");
  return table;
}

Table<TrainRecipe> make_train_table() {
  using R = TrainRecipe;
  Table<R> table;
  table.key("epochs", &R::epochs)
      .range(at_least(1))
      .doc("Passes over the training data; null: 1, unless steps is given.");
  table.key("steps", &R::steps)
      .range(at_least(1))
      .doc("Number of updates, over as many epochs as needed; if it is given, epochs is not used.");
  table.key("grad_accumulation", &R::grad_accumulation)
      .range(at_least(1))
      .on_resume(same)
      .doc("Micro-batches per update.");
  table.key("stop", &R::stop)
      .doc(
          "End the run after `patience` evaluations in a row whose `metric` is not better than the "
          "best by more than `min_delta`; null: never.");
  return table;
}

Table<LoraRecipe> make_lora_table() {
  using R = LoraRecipe;
  Table<R> table;
  table.required("match", &R::match)
      .doc("Globs over parameters of at least two dimensions, each of which gets an adapter.");
  table.key("rank", &R::rank).range(within(1, 65536)).doc("The rank of each adapter, B A.");
  table.key("alpha", &R::alpha)
      .range(above(0))
      .doc("A weight W is read as W + (alpha / rank) B A.");
  table.key("train", &R::train)
      .doc("Globs over parameters that train as a whole, such as those of a new head.");
  table.key("adapters", &R::adapters)
      .doc("File of adapters to start from: the `adapters.safetensors` of a run.");
  return table;
}

Table<StopRecipe> make_stop_table() {
  Table<StopRecipe> table;
  table.key("metric", &StopRecipe::metric)
      .one_of(&Names::metrics)
      .doc("The evaluation metric that must improve.");
  table.key("patience", &StopRecipe::patience)
      .range(at_least(1))
      .doc("End the run after this many evaluations in a row without improvement.");
  table.key("min_delta", &StopRecipe::min_delta)
      .range(at_least(0))
      .doc(
          "A value counts as an improvement if it is better than the best so far by more than "
          "this.");
  return table;
}

Table<AmpRecipe> make_amp_table() {
  using R = AmpRecipe;
  Table<R> table;
  table.key("dtype", &R::dtype).doc("Type of the mixed precision.");
  table.key("init_scale", &R::init_scale).range(above(0)).doc("First loss scale with fp16.");
  table.key("growth_factor", &R::growth_factor)
      .range(above(1))
      .doc("Factor by which the scale grows.");
  table.key("backoff_factor", &R::backoff_factor)
      .range(within_open(0, 1))
      .doc("Factor by which the scale falls after an overflow.");
  table.key("growth_interval", &R::growth_interval)
      .range(at_least(1))
      .doc("Updates without overflow after which the scale grows.");
  return table;
}

Table<EvalRecipe> make_eval_table() {
  using R = EvalRecipe;
  Table<R> table;
  table.key("every_steps", &R::every_steps)
      .range(at_least(1))
      .doc("Evaluate every N updates; null turns this off.");
  table.key("every_epochs", &R::every_epochs)
      .range(at_least(1))
      .doc("Evaluate every N epochs; null turns this off.");
  table.key("at_start", &R::at_start).doc("Evaluate before the first update.");
  table.key("metrics", &R::metrics)
      .one_of(&Names::metrics)
      .doc("Metrics to measure; null: loss, and accuracy for classification losses.");
  return table;
}

Table<CheckpointRecipe> make_checkpoint_table() {
  using R = CheckpointRecipe;
  Table<R> table;
  table.key("every_steps", &R::every_steps)
      .range(at_least(1))
      .doc("Save a checkpoint every N updates; null turns this off.");
  table.key("every_epochs", &R::every_epochs)
      .range(at_least(1))
      .doc("Save a checkpoint every N epochs; null turns this off.");
  table.key("keep", &R::keep).range(at_least(1)).doc("Number of latest checkpoints to keep.");
  table.key("keep_best", &R::keep_best)
      .one_of(&Names::metrics)
      .doc("Also keep the checkpoint that is the best by this evaluation metric.");
  table.key("background", &R::background).doc("Write checkpoints while training goes on.");
  table.key("allow_missing", &R::allow_missing)
      .on_resume(silent)
      .doc("Resume even if replicas are missing.");
  return table;
}

Table<LogRecipe> make_log_table() {
  using R = LogRecipe;
  Table<R> table;
  table.key("every_steps", &R::every_steps)
      .range(at_least(1))
      .may_differ()
      .on_resume(silent)
      .doc("Log every N updates.");
  table.key("progress", &R::progress)
      .may_differ()
      .on_resume(silent)
      .doc("How progress is shown on the terminal.");
  table.key("tensorboard", &R::tensorboard)
      .may_differ()
      .on_resume(silent)
      .doc("Write TensorBoard event files.");
  table.key("track", &R::track)
      .may_differ()
      .on_resume(silent)
      .doc(
          "The tracking service to which the run's figures are sent while it trains, by "
          "`decent-track` (docs/track.md).");
  table.key("trace", &R::trace)
      .range(at_least(1))
      .check([](const auto& trace) {
        const bool ordered = !trace || (*trace)[0] <= (*trace)[1];
        return ordered ? "" : "the first step comes after the last";
      })
      .may_differ()
      .on_resume(silent)
      .doc("Write a timeline of the steps `[first, last]` on every worker; null: off.");
  return table;
}

// The table of a section that no other file reads: made once, never changed.
template <class S, Table<S> (*make)()>
const Table<S>& made_once() {
  static const Table<S> table = make();
  return table;
}

Table<Recipe> make_recipe_table() {
  using R = Recipe;
  Table<R> table;
  table.key("name", &R::name)
      .shown_default("<stem of the file>")
      .may_differ()
      .on_resume(silent)
      .doc("Name of the run.");
  table.key("seed", &R::seed).range(at_least(0)).on_resume(same).doc("Seed of everything random.");
  table.key("output", &R::output)
      .path_as_given()
      .shown_default("runs/<name>")
      .may_differ()
      .on_resume(silent)
      .doc("Folder of the run, relative to the working folder.");
  table.section("model", &R::model, made_once<ModelRecipe, make_model_table>());
  table.section("data", &R::data, made_once<DataRecipe, make_data_table>());
  table.section("train", &R::train, made_once<TrainRecipe, make_train_table>());
  table.section("optimizer", &R::optimizer, made_once<OptimizerRecipe, make_optimizer_table>());
  table.section("schedule", &R::schedule, made_once<ScheduleRecipe, make_schedule_table>());
  table.section("parallel", &R::parallel, made_once<ParallelRecipe, make_parallel_table>());
  table.section("amp", &R::amp, made_once<AmpRecipe, make_amp_table>());
  table.section("eval", &R::eval, made_once<EvalRecipe, make_eval_table>());
  table.section("checkpoint", &R::checkpoint, made_once<CheckpointRecipe, make_checkpoint_table>());
  table.section("log", &R::log, made_once<LogRecipe, make_log_table>());
  return table;
}

}  // namespace

template <>
const Table<LoraRecipe>& table_of<LoraRecipe>() {
  return made_once<LoraRecipe, make_lora_table>();
}

template <>
const Table<StopRecipe>& table_of<StopRecipe>() {
  return made_once<StopRecipe, make_stop_table>();
}

const Table<Recipe>& recipe_table() { return made_once<Recipe, make_recipe_table>(); }

std::vector<KeyInfo> recipe_keys(const Names& names) {
  std::vector<KeyInfo> keys;
  recipe_table().describe("", names, keys);
  return keys;
}

std::optional<KeyInfo> find_key(std::string_view name, const std::vector<KeyInfo>& keys) {
  if (const KeyInfo* key = find_named(keys, name)) return *key;
  const std::string any = std::string(name.substr(0, name.find('.') + 1)) + "*";
  const KeyInfo* of_row = any == "*" ? nullptr : find_named(keys, any);
  if (of_row == nullptr) return std::nullopt;
  KeyInfo key = *of_row;
  key.name = name;
  return key;
}

std::optional<KeyInfo> find_key(std::string_view name) {
  static const std::vector<KeyInfo> keys = recipe_keys();
  return find_key(name, keys);
}

}  // namespace decent::config
