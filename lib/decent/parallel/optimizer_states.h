#pragma once
// What the optimizer keeps of each parameter: its states in flat arrays like the buckets', its
// settings, and how often it was updated.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "decent/optim/bucket_update.h"
#include "decent/parallel/decentralized_options.h"
#include "decent/parallel/replica.h"

namespace decent {

/// Of the trained parameters of `replica`, which outlives it. Not thread-safe.
class OptimizerStates {
 public:
  /// States as `options.update` names them, zero, and settings as `options` has them.
  OptimizerStates(const Replica& replica, const DecentralizedOptions& options);

  /// The arrays of a bucket, as BucketStep takes them.
  std::span<void* const> arrays(std::size_t bucket) const { return buckets_[bucket].pointers; }

  /// The parameters of a bucket with their gradients, as BucketStep takes them, in the parameters'
  /// order in memory. Changes nothing but the layout of gradients, so that it may be called twice
  /// in a step. Throws UserError for a sparse gradient.
  std::vector<BucketSlice> slices(std::size_t bucket) const;

  /// Those parameters of `bucket` that have a gradient have been updated.
  void count_updates(std::size_t bucket);

  /// Appends what checkpoints have of parameter number `i` of `bucket`: its states, in its shape,
  /// views of live memory, and the number of its updates.
  void add_to(NamedTensors& state, std::size_t bucket, std::size_t i) const;

  /// Takes the numbers of updates; `find` gives the tensor of a name.
  void restore(const std::function<const at::Tensor&(const std::string& name)>& find);

 private:
  struct Arrays {
    std::vector<at::Tensor> tensors;  // one a state, [numel of the bucket]
    std::vector<void*> pointers;
  };

  const Replica& replica_;
  std::vector<std::string> names_;           // of the states
  std::vector<Arrays> buckets_;              // by bucket
  std::vector<ParameterSettings> settings_;  // by parameter
  std::vector<std::int64_t> updates_;        // by parameter
};

}  // namespace decent
