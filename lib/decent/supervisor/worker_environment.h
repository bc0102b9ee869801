#pragma once
// The environment variables that tell a worker its place, as launchers set them.

#include <string>
#include <vector>

namespace decent {

/// What differs between the workers of one machine. The descriptors are those of comm/launch.h.
struct WorkerPlace {
  int rank = 0;
  int workers = 1;
  int port = 0;  // of the store, on 127.0.0.1
  int supervisor = -1;
  int store_listener = -1;
};

/// `inherited` ("NAME=value", ..) with the variables of this place, without those of another
/// launcher. OMP_NUM_THREADS, where it is not set, shares `processors` out among several workers.
std::vector<std::string> environment_of(const WorkerPlace& place,
                                        const std::vector<std::string>& inherited, int processors);

}  // namespace decent
