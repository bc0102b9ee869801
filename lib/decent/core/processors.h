#pragma once
// How many processors this process may use.

#include <filesystem>

namespace decent {

/// The number of processors that the scheduler may run this process on (sched_getaffinity), or
/// fewer if its control group (of version 1 or 2) allows less time; at least 1. `proc` and `groups`
/// are the mount points of those file systems.
int usable_processors(const std::filesystem::path& proc = "/proc",
                      const std::filesystem::path& groups = "/sys/fs/cgroup");

/// The time that the control group and the groups around it allow, in processors, rounded up; 0 if
/// nothing limits it.
int processor_quota(const std::filesystem::path& proc, const std::filesystem::path& groups);

}  // namespace decent
