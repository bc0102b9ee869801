#pragma once
// Decentralized data-parallel training (arXiv 2410.11998) of named parameters: every worker updates
// its own copy with its own gradient and, while the next gradient is computed, averages its weights
// with one or a few neighbours.
//
// Step t = 1, 2, .. of worker i, with x_i^0 the common start and W^(k) the mixing matrix of phase
// k:
//
//     g_i   = gradient at x_i^(t-1)
//     z_i   = x_i^0                                                    t = 1
//           = (1-gamma) x_i^(t-1) + gamma sum_j W^(k)_ij x_j^(t-1)     t > 1,  k = (t-2) mod phases
//     x_i^t = update(z_i, g_i, lr(t))
//
// Everything happens inside backward(). Hooks on the parameters count the missing gradients of each
// bucket, in whatever order they come. A complete bucket is mixed and updated, and then its
// exchange for the next step starts. step() only counts the updates; there is nothing to call.
//
// Every step starts an exchange, also the last one. So a run must end with global_avg(); otherwise
// a worker that has finished would exit while others still receive from it. TrainedParameters
// documents the rest: threads, and which calls are collective.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decent/parallel/exchange/methods.h"
#include "decent/parallel/trained_parameters.h"
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

/// How weights are updated and averaged.
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

class DecentralizedParameters : public TrainedParameters {
 public:
  /// Takes over the parameters that require a gradient; they become views of flat buckets. Every
  /// worker gets rank 0's values of all parameters and buffers. Collective. Throws UserError for
  /// options that are missing or out of range, a topology that cannot do the number of workers, and
  /// parameters that cannot be trained in place (see check_storage).
  DecentralizedParameters(const NamedTensors& parameters, const NamedTensors& buffers,
                          std::shared_ptr<Communicator> communicator, DecentralizedOptions options);
  ~DecentralizedParameters() override;

  /// Sets gamma from the next mixing on. Throws UserError if it is not in [0, 1].
  void set_adaptive_factor(double gamma);

 private:
  struct Parts;

  // `phases` are of options that were checked before anything is changed.
  DecentralizedParameters(const NamedTensors& parameters, const NamedTensors& buffers,
                          const std::shared_ptr<Communicator>& communicator,
                          DecentralizedOptions options, const std::vector<Phase>& phases);

  void begin_step() override;
  void on_gradient(std::size_t parameter) override;
  void finish_step() override;
  Exchange* exchange() const override;

  void measure_whole_gradient();
  void handle_bucket(std::size_t bucket);
  Mixing wait_for_exchange(std::size_t bucket);
  void show_received(std::size_t bucket);

  DecentralizedOptions options_;
  std::unique_ptr<Parts> parts_;
};

}  // namespace decent
