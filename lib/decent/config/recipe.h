#pragma once
// The recipe as typed structs: what a user's YAML file says, resolved. Values are validated by the
// loader (loader.h); defaults, ranges and documentation of every key live in the tables of
// schema.cpp, which also print it.

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace decent {

enum class LossName { cross_entropy, nll, mse, l1, huber, bce_with_logits, output };
enum class MemoryFormat { contiguous, channels_last };
enum class DeviceName { automatic, cpu, cuda };  // recipe: auto
enum class SourceFormat { builtin, safetensors, npz, idx, images, csv, tokens, text };
enum class Split { train, test };
enum class HoldoutPart { train, eval };
enum class OnDataError { fail, skip };
enum class ScheduleName { cosine_warmup, constant };
enum class ClipScope { global, bucket };
enum class UpdateMode { automatic, in_backward, after_backward };  // recipe: auto
enum class CommDType { fp32, bf16 };
enum class BackendName { automatic, gloo, nccl };  // recipe: auto
enum class AmpDType { off, bf16, fp16 };
enum class ProgressStyle { automatic, bar, plain, off };  // recipe: auto

/// One argument of the model's forward: the data field that feeds it, and the argument's name where
/// the recipe gave
/// `{input name: field}` (empty where it gave a list, in forward's order).
struct ModelInput {
  std::string argument;
  std::string field;
  bool operator==(const ModelInput&) const = default;
};

struct ModelRecipe {
  std::filesystem::path path;
  std::vector<ModelInput> inputs;
  std::string target;
  std::optional<std::string> output;
  LossName loss{};
  double label_smoothing = 0;
  std::int64_t ignore_index = 0;
  std::int64_t class_dim = 0;
  MemoryFormat memory_format{};
  std::optional<std::filesystem::path> weights;
  std::vector<std::string> freeze;
  std::vector<std::string> unfreeze;
  DeviceName device{};
  bool operator==(const ModelRecipe&) const = default;
};

struct HoldoutRecipe {
  double fraction = 0;
  std::int64_t seed = 0;
  HoldoutPart part{};
  bool operator==(const HoldoutRecipe&) const = default;
};

/// data.train and data.eval. Only the keys of its format are set.
struct SourceRecipe {
  SourceFormat format{};
  std::string name;                          // builtin
  Split split{};                             // builtin
  std::vector<std::filesystem::path> paths;  // safetensors, npz, images, csv, tokens, text: path
  std::filesystem::path images;              // idx
  std::filesystem::path labels;              // idx
  std::optional<std::int64_t> limit;
  std::optional<HoldoutRecipe> holdout;
  bool operator==(const SourceRecipe&) const = default;
};

struct DataRecipe {
  SourceRecipe train;
  std::optional<SourceRecipe> eval;
  std::int64_t batch_size = 0;       // samples per worker and micro-batch
  std::int64_t eval_batch_size = 0;  // samples
  bool shuffle = false;
  std::int64_t prefetch = 0;  // batches
  std::int64_t threads = 0;
  OnDataError on_error{};
  bool operator==(const DataRecipe&) const = default;
};

struct TrainRecipe {
  std::optional<std::int64_t> epochs;
  std::optional<std::int64_t> steps;  // wins over epochs
  std::int64_t grad_accumulation = 0;
  bool operator==(const TrainRecipe&) const = default;
};

struct ParamGroupRecipe {
  std::string match;  // glob over parameter names
  std::optional<double> weight_decay;
  std::optional<double> lr_scale;
  bool operator==(const ParamGroupRecipe&) const = default;
};

struct OptimizerRecipe {
  std::string name;  // one of update_names()
  double lr = 0;
  std::array<double, 2> betas{};
  double eps = 0;
  double momentum = 0;
  bool nesterov = false;
  std::int64_t accum_iter = 0;
  double alpha = 0;
  std::optional<double> weight_decay;  // resolved by the loader: always set after loading
  std::vector<ParamGroupRecipe> param_groups;
  bool operator==(const OptimizerRecipe&) const = default;
};

struct ScheduleRecipe {
  ScheduleName name{};
  std::int64_t warmup_steps = 0;
  std::optional<std::int64_t>
      t_max;  // null: max(1, steps after the warm-up), known once the data is
  double eta_min = 0;
  double warmup_decay = 0;
  bool operator==(const ScheduleRecipe&) const = default;
};

struct EdgeRecipe {
  std::vector<std::int64_t> ranks;
  double weight = 0;
  bool operator==(const EdgeRecipe&) const = default;
};

/// parallel.topology: a name, or custom phases (a list of edges each).
struct TopologyRecipe {
  std::string name;                             // one of topology_names()
  std::vector<std::vector<EdgeRecipe>> phases;  // empty: `name` counts
  bool operator==(const TopologyRecipe&) const = default;
};

struct ParallelRecipe {
  TopologyRecipe topology;
  std::optional<std::int64_t> local_world_size;
  double bucket_mb = 0;
  double gamma = 0;
  double grad_clip_norm = 0;
  ClipScope grad_clip_scope{};
  UpdateMode update{};
  bool average_buffers = false;
  CommDType comm_dtype{};
  BackendName backend{};
  double timeout_s = 0;
  std::optional<double> stall_s;
  bool operator==(const ParallelRecipe&) const = default;
};

struct AmpRecipe {
  AmpDType dtype{};
  double init_scale = 0;
  double growth_factor = 0;
  double backoff_factor = 0;
  std::int64_t growth_interval = 0;
  bool operator==(const AmpRecipe&) const = default;
};

struct EvalRecipe {
  std::optional<std::int64_t> every_steps;
  std::optional<std::int64_t> every_epochs;
  bool at_start = false;
  std::optional<std::vector<std::string>> metrics;
  bool operator==(const EvalRecipe&) const = default;
};

struct CheckpointRecipe {
  std::optional<std::int64_t> every_steps;
  std::optional<std::int64_t> every_epochs;
  std::int64_t keep = 0;
  std::optional<std::string> keep_best;
  bool background = false;
  bool allow_missing = false;
  bool operator==(const CheckpointRecipe&) const = default;
};

struct LogRecipe {
  std::int64_t every_steps = 0;
  ProgressStyle progress{};
  bool tensorboard = false;
  std::optional<std::array<std::int64_t, 2>> trace;  // first and last step
  bool operator==(const LogRecipe&) const = default;
};

struct Recipe {
  std::string name;
  std::int64_t seed = 0;
  std::filesystem::path output;
  ModelRecipe model;
  DataRecipe data;
  TrainRecipe train;
  OptimizerRecipe optimizer;
  ScheduleRecipe schedule;
  ParallelRecipe parallel;
  AmpRecipe amp;
  EvalRecipe eval;
  CheckpointRecipe checkpoint;
  LogRecipe log;
  bool operator==(const Recipe&) const = default;
};

}  // namespace decent
