#pragma once
// An exponential moving average of a worker's weights: torch.optim.swa_utils.AveragedModel with
// get_ema_multi_avg_fn(decay).

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/parallel/global_average.h"
#include "decent/parallel/replica.h"

namespace decent {

/// With e the average and x the weights after step t:
///
///     e = x                              t = 1
///       = decay * e + (1 - decay) * x    t > 1
///
/// For the trained parameters of `replica`, which must outlive it. Not thread-safe.
class EmaWeights {
 public:
  /// `alike`: see AverageOptions.
  EmaWeights(double decay, const Replica& replica, std::shared_ptr<Communicator> communicator,
             bool alike);

  /// Call it after step `step`.
  void update(std::int64_t step);

  /// Writes the average over all workers of their moving averages into the parameters. With
  /// `will_revert`, take_out() restores both. Collective.
  void put_in_place(bool will_revert);
  bool in_place() const { return !weights_.empty(); }
  /// Needs in_place().
  void take_out();

  /// The moving average of parameter number `i` of `bucket`, in its shape: a view of live memory.
  at::Tensor view(std::size_t bucket, std::size_t i) const;

 private:
  double decay_;
  const Replica& replica_;
  std::vector<at::Tensor> values_;  // by bucket, [numel]
  GlobalAverage average_;
  std::vector<at::Tensor> weights_;  // the weights that values_ have replaced; else empty
};

}  // namespace decent
