#pragma once
// Which parameter lies where in which flat bucket: a pure function of sizes, the same on every
// worker.

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

/// Parameters in reverse order of registration, which is about the order in which gradients arrive;
/// a bucket is closed once it holds `bucket_mb` MiB or more, and where the element type changes.
/// Throws UserError for a bucket size that is not positive.
std::vector<PlannedBucket> plan_buckets(std::span<const ParameterSize> parameters,
                                        double bucket_mb);

}  // namespace decent
