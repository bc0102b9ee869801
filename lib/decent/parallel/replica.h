#pragma once
// One worker's copy of a model: taken over for training, averaged over all workers and back.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/parallel/global_average.h"
#include "decent/parallel/named_tensors.h"
#include "decent/parallel/storage.h"

namespace decent {

class Exchange;

struct ReplicaOptions {
  double bucket_mb = 25.0;      // MiB
  bool average_buffers = true;  // floating-point buffers join the global average
};

/// Not thread-safe. Collective: constructor, average().
class Replica {
 public:
  /// Moves the parameters that require a gradient, `trained`, into flat buckets, of which they
  /// become views; everyone gets rank 0's values of these, of the `untrained` ones and of the
  /// `buffers`. Throws UserError, before any tensor is touched, as check_storage and plan_buckets
  /// do.
  Replica(const NamedTensors& trained, const NamedTensors& untrained, const NamedTensors& buffers,
          std::shared_ptr<Communicator> world, const ReplicaOptions& options);

  /// The trained ones, in order of registration; buckets count them so.
  const NamedTensors& parameters() const { return parameters_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// Elements of all trained parameters.
  std::int64_t parameter_count() const;

  /// The name of a trained parameter that no longer is where its bucket has it (set_data,
  /// torch::load, Module::to), so that it would be neither updated nor averaged.
  std::optional<std::string> misplaced() const;

  /// Once a bucket was written: the gradients of its parameters go, and autograd is told.
  void release_gradients(std::size_t bucket);
  /// Tells autograd that all weights were written.
  void written();

  /// Whether the tensors hold the average, with a way back.
  bool averaged() const { return average_.averaged(); }

  /// Replaces parameters and buffers by the average over all workers, once what `exchange` has
  /// under way has come; see GlobalAverage::average. With `will_revert` a later wait() mixes with
  /// that all the same; without, the exchange is dropped. Gives the consensus distance where it is
  /// asked for.
  std::optional<double> average(Exchange& exchange, bool will_revert, bool return_distance);
  /// Back to the own tensors, bit for bit. Throws std::logic_error where there is nothing to
  /// revert.
  void revert() { average_.revert(); }

 private:
  void bump_version(std::size_t parameter);

  NamedTensors parameters_;
  std::vector<Bucket> buckets_;
  std::vector<const void*> places_;  // by parameter
  GlobalAverage average_;
};

}  // namespace decent
