#pragma once
// The environment variables by which launchers tell a worker its place.

#include <string>
#include <vector>

namespace decent {

/// What differs between the workers of one machine. comm/launch.h explains the descriptors.
struct WorkerPlace {
  int rank = 0;
  int workers = 1;
  int port = 0;  // of the store, on 127.0.0.1
  int supervisor = -1;
  int store_listener = -1;
};

/// `inherited` ("NAME=value", ..) plus the variables of this place, minus the variables of other
/// launchers. If OMP_NUM_THREADS is not set and there are several workers, it becomes each worker's
/// share of `processors`.
std::vector<std::string> environment_of(const WorkerPlace& place,
                                        const std::vector<std::string>& inherited, int processors);

}  // namespace decent
