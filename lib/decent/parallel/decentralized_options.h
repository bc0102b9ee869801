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
  Topology topology = "complete";  // a name, phases, or a function that makes them
  TrainingOptions training = {};
  double gamma = 1.0;  // mixing strength, 0 to 1
  /// "fp32": weights as they are; "bf16": half the bytes in edges of 2, 3/4 in edges of 3;
  /// "modulo2", "modulo4": about 2.4 and 4.5 bits a weight for each other member of an edge, for
  /// optimizers whose steps are bounded by the learning rate; or the user's own method (see
  /// exchange.h). With options: {"modulo2", {.slices = 4}}.
  ExchangeChoice exchange = "fp32";
  /// Called in backward for every bucket that is about to be mixed, in the order of buckets. It may
  /// read but not write. In edges of more than two it costs a copy of the bucket.
  std::function<void(const PreAverage&)> pre_average = nullptr;
  /// Workers per node, for topologies that need it; 0: the launcher's value (LOCAL_WORLD_SIZE).
  int local_world_size = 0;

  /// Throws UserError for options that are missing or out of range; does not check topology and
  /// bucket_mb.
  void check() const;
};

/// Throws UserError if gamma is not in [0, 1].
void check_gamma(double gamma);

}  // namespace decent
