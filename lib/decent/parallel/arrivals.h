#pragma once
// Which gradients of a step are complete, and which bucket is handled next.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "decent/parallel/storage.h"

namespace decent {

/// Gradients arrive in any order. Buckets are handled in one order, the same on every worker, each
/// once per step. Not thread-safe.
class Arrivals {
 public:
  explicit Arrivals(std::span<const Bucket> buckets);

  /// A step begins: no gradient has arrived.
  void begin();

  /// The gradient of `parameter` has arrived. A second call in the same step changes nothing.
  void note(std::size_t parameter);

  /// The next bucket, if all its gradients have arrived.
  std::optional<std::size_t> take_complete();

  /// The next bucket, complete or not; nullopt after the last.
  std::optional<std::size_t> take_any();

 private:
  std::vector<std::size_t> bucket_of_;  // by parameter
  std::vector<std::size_t> sizes_;      // by bucket: its parameters
  std::vector<bool> arrived_;           // by parameter, in this step
  std::vector<std::size_t> missing_;    // by bucket, in this step
  std::size_t next_ = 0;
};

}  // namespace decent
