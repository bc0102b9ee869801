#include "decent/config/foreign_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

#include "decent/config/schema.h"
#include "decent/core/text.h"

namespace decent::config {
namespace {

constexpr std::string_view kLauncher =
    "the number of workers is a flag, --workers N, or is set by the launcher (torchrun "
    "--nproc-per-node N decent-train ..)";
constexpr std::string_view kReading =
    "the number of batches read ahead; the number of workers is a flag, --workers N";
constexpr std::string_view kResume =
    "a flag resumes a run: --resume auto, or --resume DIR for one checkpoint";
constexpr std::string_view kElsewhere =
    "'extends: FILE' at the top of a recipe's file builds on another recipe; --set KEY=VALUE "
    "changes "
    "a recipe for one run";
constexpr std::string_view kWeighted =
    "a mapping such as {weights: class_balanced} or {weights: FIELD}";
constexpr std::string_view kInTheLoss = "in the loss; 'data.sampling' draws samples by weights";
constexpr std::string_view kTracked = "and decent-track sends runs that are there already";
constexpr std::string_view kTarShards = "for tar shards: {format: webdataset, path: ..}";
constexpr std::string_view kUpdates = "counted in updates";
constexpr std::string_view kBothBetas = "a list of both";
constexpr std::string_view kShareOfLr = "a share of optimizer.lr";
constexpr std::string_view kALearningRate = "a learning rate, not a share of one";
constexpr std::string_view kChain = "a list of schedules, each with the number of its steps";
constexpr std::string_view kDecoupled = "where adamw, nadamw and radamw decouple the decay";
constexpr std::string_view kAugmented = "a list, which may have {trivial_augment: 31}";
constexpr std::string_view kCutmixed = "a list, which may end with {cutmix: ALPHA}";
constexpr std::string_view kMixed = "a list, which may end with {mixup: ALPHA}";
constexpr std::string_view kErased = "a list, which may have {random_erasing: P}";
constexpr std::string_view kEvaluatedSize = "a list, such as [resize: 256, center_crop: 224]";

constexpr auto kNames = std::to_array<ForeignName>({
    // how long
    {"max_epochs", "train.epochs", ""},
    {"n_epochs", "train.epochs", ""},
    {"nepochs", "train.epochs", ""},
    {"num_epochs", "train.epochs", ""},
    {"num_train_epochs", "train.epochs", ""},
    {"iterations", "train.steps", ""},
    {"max_iter", "train.steps", ""},
    {"max_iters", "train.steps", ""},
    {"max_steps", "train.steps", ""},
    {"num_iterations", "train.steps", ""},
    {"num_steps", "train.steps", ""},
    {"num_train_steps", "train.steps", ""},
    {"early_stop", "train.stop", ""},
    {"early_stopping", "train.stop", ""},
    {"trainer", "train", ""},
    {"training", "train", ""},
    // batches
    {"batch", "data.batch_size", ""},
    {"bs", "data.batch_size", ""},
    {"max_tokens", "data.batch_tokens", ""},
    {"max_tokens_per_batch", "data.batch_tokens", ""},
    {"micro_batch_size", "data.batch_size", ""},
    {"per_device_train_batch_size", "data.batch_size", ""},
    {"tokens_per_batch", "data.batch_tokens", ""},
    {"train_batch_size", "data.batch_size", ""},
    {"per_device_eval_batch_size", "data.eval_batch_size", ""},
    {"test_batch_size", "data.eval_batch_size", ""},
    {"val_batch_size", "data.eval_batch_size", ""},
    {"accum_steps", "train.grad_accumulation", ""},
    {"accumulate_grad_batches", "train.grad_accumulation", ""},
    {"accumulation_steps", "train.grad_accumulation", ""},
    {"grad_accum", "train.grad_accumulation", ""},
    {"grad_accum_steps", "train.grad_accumulation", ""},
    {"gradient_accumulation", "train.grad_accumulation", ""},
    {"gradient_accumulation_steps", "train.grad_accumulation", ""},
    // data
    {"dataset", "data.train", ""},
    {"train_data", "data.train", ""},
    {"train_dataset", "data.train", ""},
    {"train_file", "data.train", ""},
    {"train_path", "data.train", ""},
    {"training_data", "data.train", ""},
    {"trainset", "data.train", ""},
    {"wds", "data.train", kTarShards},
    {"webdataset", "data.train", kTarShards},
    {"eval_data", "data.eval", ""},
    {"eval_dataset", "data.eval", ""},
    {"test", "data.eval", ""},
    {"test_data", "data.eval", ""},
    {"testset", "data.eval", ""},
    {"val", "data.eval", ""},
    {"val_data", "data.eval", ""},
    {"val_dataset", "data.eval", ""},
    {"valid", "data.eval", ""},
    {"validation", "data.eval", ""},
    {"validation_data", "data.eval", ""},
    {"valset", "data.eval", ""},
    {"dataloader_num_workers", "data.prefetch", kReading},
    {"num_workers", "data.prefetch", kReading},
    {"workers", "data.prefetch", kReading},
    {"prefetch_factor", "data.prefetch", ""},
    {"balanced", "data.sampling", kWeighted},
    {"class_balanced", "data.sampling", kWeighted},
    {"oversample", "data.sampling", kWeighted},
    {"oversampling", "data.sampling", kWeighted},
    {"sample_weight", "data.sampling", kWeighted},
    {"sample_weights", "data.sampling", kWeighted},
    {"sampler", "data.sampling", kWeighted},
    {"train_sampler", "data.sampling", kWeighted},
    {"use_weighted_sampler", "data.sampling", kWeighted},
    {"weighted_random_sampler", "data.sampling", kWeighted},
    {"weighted_sampler", "data.sampling", kWeighted},
    {"data", "data.train", ""},
    {"augment", "data.transforms", ""},
    {"augmentation", "data.transforms", ""},
    {"augmentations", "data.transforms", ""},
    {"train_transform", "data.transforms", ""},
    {"train_transforms", "data.transforms", ""},
    {"transform", "data.transforms", ""},
    {"aa", "data.transforms", kAugmented},
    {"auto_augment", "data.transforms", kAugmented},
    {"autoaugment", "data.transforms", kAugmented},
    {"trivial_augment", "data.transforms", kAugmented},
    {"trivialaugment", "data.transforms", kAugmented},
    {"cutmix", "data.transforms", kCutmixed},
    {"cutmix_alpha", "data.transforms", kCutmixed},
    {"mixup", "data.transforms", kMixed},
    {"mixup_alpha", "data.transforms", kMixed},
    {"random_erase", "data.transforms", kErased},
    {"random_erasing", "data.transforms", kErased},
    {"reprob", "data.transforms", kErased},
    {"eval_transform", "data.eval_transforms", ""},
    {"test_transform", "data.eval_transforms", ""},
    {"test_transforms", "data.eval_transforms", ""},
    {"val_transform", "data.eval_transforms", ""},
    {"val_transforms", "data.eval_transforms", ""},
    {"val_crop_size", "data.eval_transforms", kEvaluatedSize},
    {"val_resize_size", "data.eval_transforms", kEvaluatedSize},
    // model and loss
    {"model", "model.path", ""},
    {"model_file", "model.path", ""},
    {"model_name_or_path", "model.path", ""},
    {"model_path", "model.path", ""},
    {"init_from", "model.weights", ""},
    {"pretrained", "model.weights", ""},
    {"state_dict", "model.weights", ""},
    {"label", "model.target", ""},
    {"labels", "model.target", ""},
    {"criterion", "model.loss", ""},
    {"loss_fn", "model.loss", ""},
    {"loss_function", "model.loss", ""},
    {"class_weight", "model.loss_weights", kInTheLoss},
    {"class_weights", "model.loss_weights", kInTheLoss},
    {"objective", "model.loss", ""},
    {"accelerator", "model.device", ""},
    {"cuda", "model.device", ""},
    {"use_cuda", "model.device", ""},
    // optimizer
    {"optimizer", "optimizer.name", ""},
    {"opt", "optimizer.name", ""},
    {"optim", "optimizer.name", ""},
    {"optimizer_name", "optimizer.name", ""},
    {"optimizer_type", "optimizer.name", ""},
    {"decoupled_weight_decay", "optimizer.name", kDecoupled},
    {"ema_decay", "optimizer.ema", ""},
    {"model_ema", "optimizer.ema", ""},
    {"base_lr", "optimizer.lr", ""},
    {"init_lr", "optimizer.lr", ""},
    {"initial_lr", "optimizer.lr", ""},
    {"learning_rate", "optimizer.lr", ""},
    {"max_lr", "optimizer.lr", ""},
    {"peak_lr", "optimizer.lr", ""},
    {"adam_beta1", "optimizer.betas", kBothBetas},
    {"adam_beta2", "optimizer.betas", kBothBetas},
    {"beta1", "optimizer.betas", kBothBetas},
    {"beta2", "optimizer.betas", kBothBetas},
    {"beta_1", "optimizer.betas", kBothBetas},
    {"beta_2", "optimizer.betas", kBothBetas},
    {"opt_betas", "optimizer.betas", ""},
    {"adam_epsilon", "optimizer.eps", ""},
    {"epsilon", "optimizer.eps", ""},
    {"opt_eps", "optimizer.eps", ""},
    {"adafactor", "optimizer.name", ""},
    {"clip_threshold", "optimizer.d", ""},
    {"eps_scale", "optimizer.eps2", ""},
    {"rho", "optimizer.alpha", ""},
    {"rmsprop_alpha", "optimizer.alpha", ""},
    {"smoothing_constant", "optimizer.alpha", ""},
    {"schedule_decay", "optimizer.momentum_decay", ""},
    {"mom", "optimizer.momentum", ""},
    {"sgd_momentum", "optimizer.momentum", ""},
    {"l2", "optimizer.weight_decay", ""},
    {"wd", "optimizer.weight_decay", ""},
    // course of the learning rate
    {"schedule", "schedule.name", ""},
    {"lr_schedule", "schedule.name", ""},
    {"lr_scheduler", "schedule.name", ""},
    {"lr_scheduler_type", "schedule.name", ""},
    {"scheduler", "schedule.name", ""},
    {"num_warmup_steps", "schedule.warmup_steps", ""},
    {"warmup", "schedule.warmup_steps", kUpdates},
    {"warmup_init_lr", "schedule.warmup_decay", kShareOfLr},
    {"warmup_lr", "schedule.warmup_decay", kShareOfLr},
    {"warmup_iters", "schedule.warmup_steps", ""},
    {"warmup_ratio", "schedule.warmup_steps", kUpdates},
    {"lr_min", "schedule.eta_min", ""},
    {"min_lr_ratio", "schedule.eta_min", kALearningRate},
    {"num_decay_steps", "schedule.decay_steps", ""},
    {"lr_decay_iters", "schedule.t_max", ""},
    {"milestones", "schedule.chain", kChain},
    {"schedulers", "schedule.chain", kChain},
    // workers and what they exchange
    {"distributed", "parallel", ""},
    {"bucket_cap_mb", "parallel.bucket_mb", ""},
    {"dist_backend", "parallel.backend", ""},
    {"clip_grad", "parallel.grad_clip_norm", ""},
    {"clip_grad_norm", "parallel.grad_clip_norm", ""},
    {"clip_norm", "parallel.grad_clip_norm", ""},
    {"grad_clip", "parallel.grad_clip_norm", ""},
    {"gradient_clip", "parallel.grad_clip_norm", ""},
    {"gradient_clip_val", "parallel.grad_clip_norm", ""},
    {"gradient_clipping", "parallel.grad_clip_norm", ""},
    {"max_grad_norm", "parallel.grad_clip_norm", ""},
    {"timeout", "parallel.timeout_s", ""},
    {"devices", "", kLauncher},
    {"gpus", "", kLauncher},
    {"n_gpus", "", kLauncher},
    {"nnodes", "", kLauncher},
    {"nproc", "", kLauncher},
    {"nproc_per_node", "", kLauncher},
    {"num_gpus", "", kLauncher},
    {"num_nodes", "", kLauncher},
    {"num_processes", "", kLauncher},
    {"world_size", "", kLauncher},
    // precision
    {"amp", "amp.dtype", ""},
    {"bf16", "amp.dtype", ""},
    {"fp16", "amp.dtype", ""},
    {"half", "amp.dtype", ""},
    {"mixed_precision", "amp.dtype", ""},
    {"precision", "amp.dtype", ""},
    {"use_amp", "amp.dtype", ""},
    {"loss_scale", "amp.init_scale", ""},
    // evaluation
    {"evaluation", "eval", ""},
    {"eval_every", "eval.every_steps", ""},
    {"eval_interval", "eval.every_steps", ""},
    {"eval_steps", "eval.every_steps", ""},
    {"val_check_interval", "eval.every_steps", ""},
    {"check_val_every_n_epoch", "eval.every_epochs", ""},
    {"eval_epochs", "eval.every_epochs", ""},
    // files of the run
    {"checkpoint_dir", "output", ""},
    {"checkpoint_path", "output", ""},
    {"ckpt_dir", "output", ""},
    {"default_root_dir", "output", ""},
    {"log_dir", "output", ""},
    {"logdir", "output", ""},
    {"out_dir", "output", ""},
    {"output_dir", "output", ""},
    {"save_dir", "output", ""},
    {"save_path", "output", ""},
    {"work_dir", "output", ""},
    {"checkpoint_interval", "checkpoint.every_steps", ""},
    {"save_every", "checkpoint.every_steps", ""},
    {"save_interval", "checkpoint.every_steps", ""},
    {"save_steps", "checkpoint.every_steps", ""},
    {"save_total_limit", "checkpoint.keep", ""},
    {"logging", "log", ""},
    {"log_every", "log.every_steps", ""},
    {"log_every_n_steps", "log.every_steps", ""},
    {"log_interval", "log.every_steps", ""},
    {"logging_steps", "log.every_steps", ""},
    {"print_freq", "log.every_steps", ""},
    {"aim", "log.track", kTracked},
    {"clearml", "log.track", kTracked},
    {"comet", "log.track", kTracked},
    {"comet_ml", "log.track", kTracked},
    {"logger", "log.track", kTracked},
    {"loggers", "log.track", kTracked},
    {"mlflow", "log.track", kTracked},
    {"neptune", "log.track", kTracked},
    {"report_to", "log.track", kTracked},
    {"tracker", "log.track", kTracked},
    {"trackers", "log.track", kTracked},
    {"tracking", "log.track", kTracked},
    {"wandb", "log.track", kTracked},
    {"wandb_project", "log.track", kTracked},
    {"weights_and_biases", "log.track", kTracked},
    {"resume", "", kResume},
    {"resume_from", "", kResume},
    {"resume_from_checkpoint", "", kResume},
    // other recipes
    {"_base_", "", kElsewhere},
    {"base", "", kElsewhere},
    {"base_config", "", kElsewhere},
    {"defaults", "", kElsewhere},
    {"extend", "", kElsewhere},
    {"extends", "", kElsewhere},
    {"import", "", kElsewhere},
    {"imports", "", kElsewhere},
    {"include", "", kElsewhere},
    {"includes", "", kElsewhere},
    {"inherit", "", kElsewhere},
    {"inherits", "", kElsewhere},
    {"inherit_from", "", kElsewhere},
    {"parent", "", kElsewhere},
    // the rest
    {"manual_seed", "seed", ""},
    {"random_seed", "seed", ""},
    {"exp_name", "name", ""},
    {"experiment", "name", ""},
    {"experiment_name", "name", ""},
    {"run_name", "name", ""},
});

// The name as the table spells it.
std::string normalised(std::string_view name) {
  std::string text(name);
  for (char& c : text) {
    c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

// The key with this dotted name; if there is none, all keys that end with it.
std::vector<std::string> keys_called(const std::string& name, const Names& names) {
  std::vector<std::string> found;
  for (const KeyInfo& key : recipe_keys(names)) {
    if (key.name == name) return {name};
    if (key.name.ends_with("." + name)) found.push_back(key.name);
  }
  return found;
}

std::string set_flag(const std::string& key) { return "--set " + key + "=VALUE"; }

}  // namespace

std::span<const ForeignName> foreign_names() { return kNames; }

const ForeignName* find_foreign_name(std::string_view name) {
  const std::string wanted = normalised(name);
  const auto* found = std::find_if(kNames.begin(), kNames.end(),
                                   [&](const ForeignName& row) { return row.theirs == wanted; });
  return found == kNames.end() ? nullptr : found;
}

std::string quoted_key(std::string_view key) {
  const bool is_at_the_top = key.find('.') == key.npos;
  return "'" + std::string(key) + "'" + (is_at_the_top ? " at the top" : "");
}

std::optional<std::string> foreign_name_advice(std::string_view name) {
  const ForeignName* row = find_foreign_name(name);
  if (row == nullptr) return std::nullopt;
  if (row->ours.empty()) return std::string(row->note);
  return "here it is " + quoted_key(row->ours) +
         (row->note.empty() ? "" : ", " + std::string(row->note));
}

std::optional<std::string> flag_advice(std::string_view flag, const Names& names) {
  const std::string name =
      normalised(flag.substr(std::min(flag.find_first_not_of('-'), flag.size())));
  std::vector<std::string> ways;
  for (const std::string& key : keys_called(name, names)) ways.push_back(set_flag(key));
  if (!ways.empty()) return "it is a key of the recipe: " + join(ways, " or ");
  const ForeignName* row = find_foreign_name(name);
  if (row == nullptr) return std::nullopt;
  if (row->ours.empty()) return std::string(row->note);
  return "it is a key of the recipe: " + set_flag(std::string(row->ours));
}

}  // namespace decent::config
