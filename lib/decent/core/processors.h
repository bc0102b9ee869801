#pragma once
// How many processors this process may use.

#include <filesystem>

namespace decent {

/// The processors that the scheduler may run this process on (sched_getaffinity), or fewer where
/// its control group (of version 1 or 2) allows less time than they have; at least 1. `proc` and
/// `groups` are where those file systems are mounted.
int usable_processors(const std::filesystem::path& proc = "/proc",
                      const std::filesystem::path& groups = "/sys/fs/cgroup");

/// The processors' worth of time that the control group and those around it allow, rounded up; 0
/// where nothing limits it.
int processor_quota(const std::filesystem::path& proc, const std::filesystem::path& groups);

}  // namespace decent
