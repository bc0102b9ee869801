#pragma once
// One worker's copy of a model: flat buckets, their gradients, the global average over all workers,
// and its revert.

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/optim/bucket_update.h"
#include "decent/parallel/global_average.h"
#include "decent/parallel/named_tensors.h"
#include "decent/parallel/storage.h"

namespace decent {

class Exchange;

struct ReplicaOptions {
  double bucket_mb = 25.0;      // MiB
  bool average_buffers = true;  // floating-point buffers join the global average
  /// Whether trained parameters should hold the same bits on all workers: the average then checks
  /// this, and changes only buckets that differ.
  bool copies_alike = false;
};

/// Not thread-safe. Collective: constructor, average().
class Replica {
 public:
  /// Moves the parameters that require a gradient, `trained`, into flat buckets, of which they
  /// become views. Every worker gets rank 0's values of `trained`, `untrained` and `buffers`.
  /// Throws UserError as check_storage and plan_buckets do, before any tensor is changed.
  Replica(const NamedTensors& trained, const NamedTensors& untrained, const NamedTensors& buffers,
          std::shared_ptr<Communicator> communicator, const ReplicaOptions& options);

  /// The trained parameters, in order of registration; Bucket::parameters are indices of this list.
  const NamedTensors& parameters() const { return parameters_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// Elements of all trained parameters.
  std::int64_t parameter_count() const;

  /// The name of a trained parameter that is no longer a view of its bucket (after set_data,
  /// torch::load, Module::to), and so would be neither updated nor averaged; nullopt if there is
  /// none.
  std::optional<std::string> misplaced() const;

  void release_gradient(std::size_t parameter);
  /// Call it after writing a bucket. Bumps the versions of its parameters for autograd.
  void written(std::size_t bucket);
  /// The same after writing all weights.
  void written();

  /// Whether the tensors hold the average and revert() is possible.
  bool averaged() const { return average_.averaged(); }

  /// Waits for the exchanges under way, then replaces parameters and buffers by the average over
  /// all workers; see GlobalAverage::average. With `will_revert`, a later wait() of `exchange`
  /// still mixes with the received weights; without it they are dropped. With `return_distance`,
  /// returns the consensus distance. `exchange` may be null.
  std::optional<double> average(Exchange* exchange, bool will_revert, bool return_distance);
  /// Restores this worker's own values, bit for bit. Throws std::logic_error if there is nothing to
  /// revert.
  void revert() { average_.revert(); }

 private:
  void bump_version(std::size_t parameter);

  NamedTensors parameters_;
  std::vector<Bucket> buckets_;
  std::vector<const void*> places_;  // by parameter
  GlobalAverage average_;
};

/// The gradients of one bucket, as its update takes them.
struct BucketGradients {
  std::vector<BucketSlice> slices;  // in ascending order; a parameter may come in several parts
  std::vector<bool> present;        // by place in the bucket: whether the parameter has a gradient
};

/// This worker's own gradients, .grad of each parameter of the bucket. `slices` are those
/// parameters without their gradients. It changes only the layout of gradients, so it may be called
/// twice in a step. Throws UserError for a sparse gradient.
BucketGradients own_gradients(const Replica& replica, std::size_t bucket,
                              std::vector<BucketSlice> slices);

}  // namespace decent
