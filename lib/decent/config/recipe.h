#pragma once
// The recipe as typed structs: the content of a user's YAML file, resolved. The values here are the
// defaults, except for defaults that depend on other keys (resolve.h). The tables in schema.cpp
// have the ranges and documentation of all keys; the loader (loader.h) validates values.

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "decent/core/options.h"
#include "decent/optim/schedule.h"
#include "decent/optim/update_names.h"

namespace decent {

enum class MemoryFormat { contiguous, channels_last };
enum class ExportMode { eval, train };
enum class DeviceName { automatic, cpu, cuda };  // recipe: auto
enum class LrScaling { none, sqrt };
enum class ClipScope { global, bucket };
enum class UpdateMode { automatic, in_backward, after_backward };  // recipe: auto
enum class BackendName { automatic, gloo, nccl };                  // recipe: auto
enum class AmpDType { off, bf16, fp16 };
enum class TrackingService { mlflow, wandb, trackio, tensorboard, prometheus };
enum class ProgressStyle { automatic, bar, plain, off };  // recipe: auto

/// One argument of the model's forward: the data field that feeds it, and the argument's name if
/// the recipe has `{input name: field}` (empty if it has a list, in the order of forward).
struct ModelInput {
  std::string argument;
  std::string field;
  bool operator==(const ModelInput&) const = default;
};

/// A prefix of names in a file of weights, and its replacement.
struct PrefixRecipe {
  std::string from;
  std::string to;
  bool operator==(const PrefixRecipe&) const = default;
};

/// model.lora: low-rank adapters of some weights, which train instead of the weights.
struct LoraRecipe {
  std::vector<std::string> match;  // globs
  std::int64_t rank = 8;
  double alpha = 16;
  std::vector<std::string> train;  // globs
  std::optional<std::filesystem::path> adapters;
  bool operator==(const LoraRecipe&) const = default;
};

struct ModelRecipe {
  std::filesystem::path path;
  std::vector<ModelInput> inputs = {{.argument = "", .field = "x"}};
  std::string target = "y";
  std::optional<std::string> output;
  std::string loss = "cross_entropy";  // one of Names::losses
  Options loss_options;                // every option of every loss
  std::int64_t ignore_index = -100;
  std::int64_t class_dim = -1;
  std::optional<std::vector<double>> loss_weights;
  MemoryFormat memory_format = MemoryFormat::contiguous;
  std::optional<std::filesystem::path> weights;
  std::vector<std::string> weights_ignore;  // globs
  std::vector<PrefixRecipe> weights_rename;
  std::vector<std::string> freeze;
  std::vector<std::string> unfreeze;
  bool freeze_statistics = false;
  std::optional<LoraRecipe> lora;
  ExportMode export_mode = ExportMode::eval;
  DeviceName device = DeviceName::automatic;
  bool fast_math = false;
  bool operator==(const ModelRecipe&) const = default;
};

enum class HoldoutPart { train, eval };

/// Keeps a part of the samples for evaluation.
struct HoldoutRecipe {
  double fraction = 0.1;
  std::int64_t seed = 0;
  HoldoutPart part = HoldoutPart::train;
  bool operator==(const HoldoutRecipe&) const = default;
};

/// data.train, data.eval and data.predict.
struct SourceRecipe {
  std::string format;                 // one of Names::formats
  Options options;                    // the keys of this format
  std::optional<std::int64_t> limit;  // samples
  std::optional<HoldoutRecipe> holdout;
  bool operator==(const SourceRecipe&) const = default;
};

/// An element of data.transforms and data.eval_transforms; its name is one of Names::transforms.
using TransformRecipe = NamedValues;

enum class OnError { fail, skip };

/// The value of data.sampling.weights that is no field.
inline constexpr std::string_view kClassBalanced = "class_balanced";

/// data.sampling: training data is drawn by weights.
struct SamplingRecipe {
  std::string weights;  // the field that has them, or kClassBalanced
  bool replacement = true;
  bool operator==(const SamplingRecipe&) const = default;
};

/// Numbers by the names of what they are for, in the order in which they are written.
using NamedCounts = std::vector<std::pair<std::string, std::int64_t>>;

/// data.batch_size: samples per worker and micro-batch. A rank goes before a host, and a host
/// before the usual size.
struct BatchSizeRecipe {
  std::int64_t usual = 32;
  NamedCounts hosts;
  NamedCounts ranks;

  /// Whether all workers have the usual size.
  bool is_one() const { return hosts.empty() && ranks.empty(); }
  bool operator==(const BatchSizeRecipe&) const = default;
};

struct DataRecipe {
  SourceRecipe train;
  std::optional<SourceRecipe> eval;
  std::optional<SourceRecipe> predict;
  BatchSizeRecipe batch_size;
  std::optional<std::int64_t> batch_tokens = {};  // wins over batch_size
  std::int64_t eval_batch_size = 256;             // samples
  bool shuffle = true;
  std::optional<SamplingRecipe> sampling;
  std::int64_t prefetch = 2;  // batches
  std::int64_t threads = 1;
  OnError on_error = OnError::fail;
  std::vector<TransformRecipe> transforms;
  std::optional<std::vector<TransformRecipe>> eval_transforms;
  bool export_transforms = false;

  /// The list for evaluation and prediction, which leave its random transforms out.
  const std::vector<TransformRecipe>& transforms_of_evaluation() const {
    return eval_transforms ? *eval_transforms : transforms;
  }
  /// The key of that list, for messages.
  const char* key_of_evaluation() const {
    return eval_transforms ? "data.eval_transforms" : "data.transforms";
  }
  bool operator==(const DataRecipe&) const = default;
};

/// train.stop: ends a run that gets no better.
struct StopRecipe {
  std::string metric = "loss";  // of the evaluations
  std::int64_t patience = 5;    // evaluations without improvement
  double min_delta = 0;         // by how much a value must be better than the best
  bool operator==(const StopRecipe&) const = default;
};

struct TrainRecipe {
  std::optional<std::int64_t> epochs;  // resolved by the loader: 1 if steps is null too
  std::optional<std::int64_t> steps;   // wins over epochs
  std::int64_t grad_accumulation = 1;
  std::optional<StopRecipe> stop;
  bool operator==(const TrainRecipe&) const = default;
};

struct ParamGroupRecipe {
  std::string match;  // glob over parameter names
  std::optional<double> weight_decay;
  std::optional<double> lr_scale;
  std::optional<std::string> optimizer = {};
  bool operator==(const ParamGroupRecipe&) const = default;
};

struct OptimizerRecipe {
  std::string name = "adamw";  // one of update_names()
  double lr = 1e-3;
  LrScaling lr_scaling = LrScaling::none;
  // Every option of every optimizer; resolved by the loader: the defaults are those of `name`.
  Options options = usual_options(update_table());
  std::optional<double> weight_decay;  // resolved by the loader: always set after loading
  std::optional<double> ema;           // decay of the averaged weights
  std::vector<ParamGroupRecipe> param_groups;
  bool operator==(const OptimizerRecipe&) const = default;
};

struct ScheduleRecipe {
  std::string name = "cosine_warmup";                 // one of schedule_table()
  Options options = usual_options(schedule_table());  // every option of every schedule
  std::vector<ScheduleLink> chain;                    // of `chain`
  bool operator==(const ScheduleRecipe&) const = default;
};

struct EdgeRecipe {
  std::vector<std::int64_t> ranks;
  double weight = 0;
  bool operator==(const EdgeRecipe&) const = default;
};

/// parallel.topology: a name, or custom phases (a list of edges each).
struct TopologyRecipe {
  std::string name;                             // one of Names::topologies
  std::vector<std::vector<EdgeRecipe>> phases;  // empty: `name` decides
  bool operator==(const TopologyRecipe&) const = default;
};

struct ParallelRecipe {
  std::string method = "gossip";  // one of Names::methods
  TopologyRecipe topology = {.name = "complete", .phases = {}};
  std::string topology_otherwise = "one-peer-exp";  // one of Names::topologies
  std::optional<std::int64_t> local_world_size;
  double bucket_mb = 25;
  double gamma = 1;
  double grad_clip_norm = 0;
  ClipScope grad_clip_scope = ClipScope::global;
  UpdateMode update = UpdateMode::automatic;
  bool average_buffers = true;
  std::string comm_dtype = "fp32";               // one of Names::exchanges
  std::optional<std::string> comm_dtype_within;  // likewise, inside a machine; null: the same
  std::int64_t slices = 1;
  Options exchange_options;  // every option of every exchange, but slices, which all have
  std::optional<double> link_mbit;
  BackendName backend = BackendName::automatic;
  double timeout_s = 60;
  std::optional<double> stall_s;
  double farewell_s = 20;
  bool operator==(const ParallelRecipe&) const = default;
};

struct AmpRecipe {
  AmpDType dtype = AmpDType::off;
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  std::int64_t growth_interval = 2000;
  bool operator==(const AmpRecipe&) const = default;
};

struct EvalRecipe {
  std::optional<std::int64_t> every_steps;
  std::optional<std::int64_t> every_epochs = 1;
  bool at_start = false;
  std::optional<std::vector<std::string>> metrics;
  bool operator==(const EvalRecipe&) const = default;
};

struct CheckpointRecipe {
  std::optional<std::int64_t> every_steps;
  std::optional<std::int64_t> every_epochs = 1;
  std::int64_t keep = 3;
  std::optional<std::string> keep_best;
  bool background = true;
  bool allow_missing = false;
  bool operator==(const CheckpointRecipe&) const = default;
};

struct LogRecipe {
  std::int64_t every_steps = 10;
  ProgressStyle progress = ProgressStyle::automatic;
  bool tensorboard = true;
  std::optional<TrackingService> track;
  std::optional<std::array<std::int64_t, 2>> trace;  // first and last step
  bool operator==(const LogRecipe&) const = default;
};

struct Recipe {
  std::string name;  // resolved by the loader: the stem of the file
  std::int64_t seed = 0;
  std::filesystem::path output;  // resolved by the loader: runs/<name>
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
