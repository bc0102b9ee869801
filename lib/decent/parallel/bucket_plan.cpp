#include "decent/parallel/bucket_plan.h"

#include <string>

#include "decent/core/error.h"

namespace decent {
namespace {

// Two cache lines, more than any vector load needs.
constexpr std::int64_t kAlignBytes = 128;

std::int64_t aligned(std::int64_t numel, int element_bytes) {
  const std::int64_t step = kAlignBytes / element_bytes;
  return (numel + step - 1) / step * step;
}

}  // namespace

std::vector<PlannedBucket> plan_buckets(std::span<const ParameterSize> parameters,
                                        double bucket_mb) {
  if (!(bucket_mb > 0)) {
    throw UserError("the bucket size is " + std::to_string(bucket_mb) +
                    " MiB: it must be greater than 0 (25 is usual)");
  }
  const double capacity = bucket_mb * 1024 * 1024;
  std::vector<PlannedBucket> buckets;
  bool open = false;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const ParameterSize& parameter = parameters[i];
    if (!open || buckets.back().dtype != parameter.dtype) {
      buckets.push_back({.element_bytes = parameter.element_bytes, .dtype = parameter.dtype});
    }
    PlannedBucket& bucket = buckets.back();
    bucket.placements.push_back({i, bucket.numel});
    bucket.numel += aligned(parameter.numel, parameter.element_bytes);
    open = static_cast<double>(bucket.numel * bucket.element_bytes) < capacity;
  }
  return buckets;
}

}  // namespace decent
