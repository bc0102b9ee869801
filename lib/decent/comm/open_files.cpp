#include "decent/comm/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>

#include "decent/core/error.h"

namespace decent {
namespace {

// A run opens its log, metrics, lock and data; for each worker it opens connections of the store,
// the control plane and gloo, and two files of shared memory. A few more than were counted.
constexpr rlim_t kForRun = 16;
constexpr rlim_t kForWorker = 5;

rlim_t open_now() {
  std::error_code failed;
  const std::filesystem::directory_iterator files("/proc/self/fd", failed);
  return failed ? 0 : static_cast<rlim_t>(std::distance(begin(files), end(files)));
}

}  // namespace

void allow_open_files(int workers) {
  const rlim_t needed = open_now() + kForRun + kForWorker * static_cast<rlim_t>(workers);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  const rlimit raised{.rlim_cur = std::min(needed, limit.rlim_max), .rlim_max = limit.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &raised);
  if (raised.rlim_cur >= needed) return;
  throw UserError("too few open files are allowed: a run of " + std::to_string(workers) +
                  " workers needs " + std::to_string(needed) +
                  " in each process, and the limit is " + std::to_string(limit.rlim_max) +
                  ". Raise it (`ulimit -n 1024`; as root, LimitNOFILE or limits.conf), or start "
                  "fewer workers");
}

}  // namespace decent
