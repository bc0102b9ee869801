#include "decent/supervisor/processors.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

namespace decent {
namespace {

int processors_of_scheduler() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// The line "0::/system.slice/run.scope" names the group of version 2.
std::string group_of(const std::filesystem::path& proc) {
  std::ifstream file(proc / "self" / "cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.substr(4);
  }
  return "";
}

// "150000 100000" are microseconds of computing in each period; "max 100000" is no limit.
double limit_in(const std::filesystem::path& group) {
  std::ifstream file(group / "cpu.max");
  std::string time;
  double period = 0;
  if (!(file >> time >> period) || time == "max" || period <= 0) return 0;
  return std::atof(time.c_str()) / period;
}

}  // namespace

int processor_quota(const std::filesystem::path& proc, const std::filesystem::path& groups) {
  double least = limit_in(groups);  // inside a container the own group is the root
  std::filesystem::path group = groups;
  for (const auto& part : std::filesystem::path(group_of(proc))) {
    group /= part;
    const double limit = limit_in(group);
    if (limit > 0 && (least == 0 || limit < least)) least = limit;
  }
  return static_cast<int>(std::ceil(least));
}

int usable_processors(const std::filesystem::path& proc, const std::filesystem::path& groups) {
  const int processors = processors_of_scheduler();
  const int quota = processor_quota(proc, groups);
  return std::max(1, quota > 0 ? std::min(processors, quota) : processors);
}

}  // namespace decent
