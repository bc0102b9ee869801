#pragma once
// The optimizer's data for each parameter: its states, in flat arrays with the layout of the
// buckets or, if they are smaller than the parameter, in tensors of their own; its settings, and
// its number of updates.

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

  /// What an update that is_factored() does with the parameters of a bucket.
  FactoredWork factored_work(std::size_t bucket) const;

  /// The sizes of steps, in learning rates, as an exchange takes them.
  std::vector<std::vector<LrScaleFrom>> lr_scales() const;

  /// The parameters of a bucket, as BucketStep takes them, without gradients.
  std::vector<BucketSlice> slices(std::size_t bucket) const;

  /// Counts an update of each parameter of `bucket` that was `updated` (by place in the bucket).
  void count_updates(std::size_t bucket, const std::vector<bool>& updated);

  /// Appends the tensors of parameter number `i` of `bucket` for checkpoints: its states, in its
  /// shape if they are flat, which are views of live memory, and its number of updates (int64
  /// scalar, a copy).
  void add_to(NamedTensors& state, std::size_t bucket, std::size_t i) const;

  /// Sets the numbers of updates; `find` returns the tensor of a name.
  void restore(const std::function<const at::Tensor&(const std::string& name)>& find);

 private:
  struct Arrays {
    std::vector<at::Tensor> tensors;  // one per state_names(), [numel of the bucket]
    std::vector<void*> pointers;
  };

  double step_scale(std::size_t parameter) const;
  bool is_factored() const { return update_ && update_->is_factored(); }

  const Replica& replica_;
  std::shared_ptr<const BucketUpdate> update_;  // may be null
  std::vector<Arrays> buckets_;                 // by bucket
  std::vector<ParameterSettings> settings_;     // by parameter
  std::vector<Matrix> matrices_;                // by parameter
  std::vector<NamedTensors> factors_;           // by parameter; none unless is_factored()
  std::vector<std::int64_t> updates_;           // by parameter
};

/// The memory of an optimizer's states for these parameters, in buckets of so many bytes.
std::int64_t bytes_of_states(const BucketUpdate& update, const NamedTensors& trained,
                             const std::vector<std::int64_t>& bucket_bytes);

}  // namespace decent
