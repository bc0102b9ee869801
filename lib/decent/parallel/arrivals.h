#pragma once
// Which gradients of a step are there, and which bucket's turn it is.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "decent/parallel/storage.h"

namespace decent {

/// Gradients arrive in any order; buckets are handled in theirs, the same on every worker, each
/// once a step. Not thread-safe.
class Arrivals {
 public:
  explicit Arrivals(std::span<const Bucket> buckets);

  /// A step begins: nothing is there.
  void begin();

  /// The gradient of `parameter` is there. Said again in the same step, it changes nothing.
  void note(std::size_t parameter);

  /// The bucket whose turn it is, where all its gradients are there.
  std::optional<std::size_t> take_complete();

  /// The bucket whose turn it is, complete or not; nothing after the last.
  std::optional<std::size_t> take_any();

 private:
  std::vector<std::size_t> bucket_of_;  // by parameter
  std::vector<std::size_t> sizes_;      // by bucket: its parameters
  std::vector<bool> arrived_;           // by parameter, in this step
  std::vector<std::size_t> missing_;    // by bucket, in this step
  std::size_t next_ = 0;
};

}  // namespace decent
