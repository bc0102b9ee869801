#pragma once
// The optimizer's data for each parameter: its states, in flat arrays with the layout of the
// buckets, its settings, and its number of updates.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "decent/optim/bucket_update.h"
#include "decent/parallel/exchange/exchange.h"
#include "decent/parallel/replica.h"
#include "decent/parallel/training_options.h"

namespace decent {

/// For the trained parameters of `replica`, which must outlive it. Not thread-safe.
class OptimizerStates {
 public:
  /// States of `options.update`, all zero, and settings of `options`. Without an update there are
  /// none.
  OptimizerStates(const Replica& replica, const TrainingOptions& options);

  /// The arrays of a bucket, as BucketStep takes them.
  std::span<void* const> arrays(std::size_t bucket) const { return buckets_[bucket].pointers; }

  /// The sizes of steps, in learning rates, as an exchange takes them.
  std::vector<std::vector<LrScaleFrom>> lr_scales() const;

  /// The parameters of a bucket, as BucketStep takes them, without gradients.
  std::vector<BucketSlice> slices(std::size_t bucket) const;

  /// Counts an update of each parameter of `bucket` that was `updated` (by place in the bucket).
  void count_updates(std::size_t bucket, const std::vector<bool>& updated);

  /// Appends the tensors of parameter number `i` of `bucket` for checkpoints: its states in its
  /// shape, which are views of live memory, and its number of updates (int64 scalar, a copy).
  void add_to(NamedTensors& state, std::size_t bucket, std::size_t i) const;

  /// Sets the numbers of updates; `find` returns the tensor of a name.
  void restore(const std::function<const at::Tensor&(const std::string& name)>& find);

 private:
  double step_scale(std::size_t parameter) const;

  struct Arrays {
    std::vector<at::Tensor> tensors;  // one per state, [numel of the bucket]
    std::vector<void*> pointers;
  };

  const Replica& replica_;
  std::shared_ptr<const BucketUpdate> update_;  // may be null
  std::vector<Arrays> buckets_;                 // by bucket
  std::vector<ParameterSettings> settings_;     // by parameter
  std::vector<Matrix> matrices_;                // by parameter
  std::vector<std::int64_t> updates_;           // by parameter
};

}  // namespace decent
