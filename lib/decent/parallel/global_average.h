#pragma once
// The average of all workers' models, and its revert to each worker's own values. Also what means
// need whose sum could overflow, and their rounding to a narrower type.

#include <ATen/core/Tensor.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/parallel/named_tensors.h"

namespace decent {

struct AverageOptions {
  bool average_buffers = true;
  /// Whether buckets should hold the same bits on all workers. Buckets that do stay as they are,
  /// and only their hash is sent.
  bool alike = false;
};

/// Averages bucket tensors and buffers in place over all workers. Not thread-safe. All calls except
/// revert() are collective.
class GlobalAverage {
 public:
  /// The tensors are the live ones of training. With options.average_buffers, floating-point
  /// buffers are averaged in float64 and rounded once, except that buffers with the same bits on
  /// all workers stay as they are. All other buffers take rank 0's values, so that every worker
  /// holds the same model.
  GlobalAverage(std::shared_ptr<Communicator> communicator, std::vector<at::Tensor> buckets,
                const NamedTensors& buffers, const AverageOptions& options);

  bool averaged() const { return averaged_; }

  /// Replaces every tensor by the average. With `keep_backup`, revert() can restore the worker's
  /// own values. With `return_distance`, returns the consensus distance sqrt(mean over workers of
  /// ||x_i - mean||^2) over all parameters. Throws GivenUp if a worker is lost meanwhile
  /// (comm/lost_workers.h); with `keep_backup`, all tensors then have the worker's own values.
  std::optional<double> average(bool keep_backup, bool return_distance);

  /// Restores the worker's own values, bit for bit. Needs averaged().
  void revert();

  /// Keeps the average for good. Needs averaged().
  void commit();

 private:
  void average_buckets(bool keep_backup);
  std::vector<at::Tensor> differing(const std::vector<at::Tensor>& tensors) const;
  void average_buffers();
  double distance_to(const std::vector<at::Tensor>& own) const;

  std::shared_ptr<Communicator> communicator_;
  std::vector<at::Tensor> buckets_;
  bool alike_;
  std::vector<at::Tensor> averaged_buffers_;
  std::vector<at::Tensor> copied_buffers_;
  bool averaged_ = false;
  double distance_ = 0;
  std::vector<at::Tensor> moving_;  // the buckets that the last average changed
  std::vector<at::Tensor> bucket_backup_;
  std::vector<at::Tensor> buffer_backup_;  // averaged_buffers_, then copied_buffers_
};

/// A mean is the sum of addend * x over all x, divided by `divisor`. `addend` is a power of two, so
/// no sum of finite numbers overflows, and the result has the bits of sum / count (except where
/// x / count is subnormal).
struct MeanFactors {
  double addend = 1;
  double divisor = 1;
};

inline MeanFactors mean_factors(std::int64_t count) {
  const double addend = 1.0 / static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(count)));
  return {.addend = addend, .divisor = static_cast<double>(count) * addend};
}

/// Writes float64 `values` to `target`, of the same shape and any floating-point type, each rounded
/// once. (PyTorch's copy_ rounds to float32 on the way to a type of 16 bits.)
void copy_rounded_once(const at::Tensor& target, const at::Tensor& values);

}  // namespace decent
