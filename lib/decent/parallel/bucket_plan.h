#pragma once
// The place of each parameter in flat buckets: a pure function of sizes, the same on every worker.

#include <cstdint>
#include <span>
#include <vector>

namespace decent {

/// What the plan needs to know of a parameter.
struct ParameterSize {
  std::int64_t numel = 0;
  int element_bytes = 4;
  int dtype = 0;  // parameters of one bucket share it
};

struct Placement {
  std::size_t parameter = 0;  // index in order of registration
  std::int64_t offset = 0;    // elements from the start of the bucket, aligned to 128 bytes
};

struct PlannedBucket {
  std::vector<Placement> placements = {};
  std::int64_t numel = 0;  // with padding
  int element_bytes = 4;
  int dtype = 0;
};

/// Takes parameters in reverse order of registration, which is about the order in which gradients
/// arrive. A bucket is closed once it holds `bucket_mb` MiB or more, and before the element type
/// changes. Throws UserError for a bucket size that is not positive.
std::vector<PlannedBucket> plan_buckets(std::span<const ParameterSize> parameters,
                                        double bucket_mb);

}  // namespace decent
