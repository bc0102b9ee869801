#pragma once
// How weights are updated and averaged.

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "decent/parallel/exchange/methods.h"
#include "decent/parallel/training_options.h"
#include "decent/topology/topology.h"

namespace decent {

/// What a pre-average callback is shown of a bucket, just before it is mixed.
struct PreAverage {
  std::int64_t step = 0;    // the step that is being done, from 1
  std::size_t bucket = 0;   // its number, in the order of updates
  const Edge& edge;         // the ranks that exchange, including this one, and their self-weight
  const at::Tensor& local;  // [numel], flat, zero between parameters
  const at::Tensor&
      received;  // [numel]: the peer's, or in a larger edge the mean of all other members'
};

struct DecentralizedOptions {
  Topology topology = "complete";              // a name, phases, or a function that makes them
  std::shared_ptr<const BucketUpdate> update;  // from make_update, or the user's own
  Schedule schedule;  // learning rate of step t = 1, 2, ..: from make_schedule, or any function
  double weight_decay = 0.0;  // of tensors with at least 2 dimensions; the others do not decay
  /// If given, it replaces weight_decay. Called once for each parameter.
  SettingsFunction settings = nullptr;
  double bucket_mb = 25.0;  // MiB
  double gamma = 1.0;       // mixing strength, 0 to 1
  /// "fp32": weights as they are; "bf16": half the bytes in edges of 2, 3/4 in edges of 3;
  /// "modulo2", "modulo4": about 2.4 and 4.5 bits a weight for each other member of an edge, for
  /// optimizers whose steps are bounded by the learning rate; or the user's own method (see
  /// exchange.h).
  ExchangeChoice exchange = "fp32";
  std::int64_t slices = 1;  // K: in every step each bucket exchanges 1/K of itself, in turn
  /// R of the modulo exchanges, in learning rates: how far apart copies may be. By default it
  /// follows from slices and topology.
  std::optional<double> modulo_range = std::nullopt;
  bool average_buffers = true;  // floating-point buffers join the global average
  ClipOptions clip = {};        // with one norm over all, buckets are updated after backward
  UpdateTime update_time = UpdateTime::in_backward;
  /// For losses that are multiplied by loss_scale() before backward(). A step with a gradient that
  /// is not finite mixes but does not update. Buckets are updated after backward.
  std::optional<LossScalerOptions> loss_scaler = std::nullopt;
  /// The decay of an exponential moving average of the weights, in [0, 1); see use_ema() and
  /// EmaWeights. It costs a copy of the parameters and a pass over them in every step.
  std::optional<double> ema = std::nullopt;
  /// Called in backward for every bucket that is about to be mixed, in the order of buckets. It may
  /// read but not write. In edges of more than two it costs a copy of the bucket.
  std::function<void(const PreAverage&)> pre_average = nullptr;
  /// Workers per node, for topologies that need it; 0: the launcher's value (LOCAL_WORLD_SIZE).
  int local_world_size = 0;
  /// Records waits, updates and exchanges of buckets in the steps in which it is on; each exchange
  /// then has a thread that waits for its end. The caller calls its begin_step().
  std::shared_ptr<Trace> trace = nullptr;
  /// Called once for each parameter that gets no gradient, with a message.
  std::function<void(const std::string&)> warn = [](const std::string&) {};

  /// Throws UserError for options that are missing or out of range; does not check topology and
  /// bucket_mb.
  void check() const;
};

/// Throws UserError if gamma is not in [0, 1].
void check_gamma(double gamma);

/// Throws UserError if `slices` is less than 1, or `modulo_range` is not positive.
void check_exchange(std::int64_t slices, const std::optional<double>& modulo_range);

}  // namespace decent
