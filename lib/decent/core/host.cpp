#include "decent/core/host.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>

#include "decent/core/text.h"

namespace decent {
namespace {

std::string first_line_of(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string link_target(const char* path) {
  std::error_code ignored;
  return std::filesystem::read_symlink(path, ignored).string();
}

// The rest of the first line that begins with `key`; "" if there is no such line.
std::string value_in(const char* file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key)) return line.substr(key.size());
  return "";
}

int processors_of_scheduler() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

double number_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  double number = 0;
  return file >> number ? number : 0;
}

// The smaller of two limits, where 0 means no limit.
double smaller(double a, double b) { return a == 0 || b == 0 ? a + b : std::min(a, b); }

// The limit of one control group, in processors; 0 if it has none. Version 2 has the microseconds
// of computing in each period and the period in one file, "150000 100000", or "max 100000" for no
// limit. Version 1 has them in a file each, where -1 means no limit.
double limit_in(const std::filesystem::path& group) {
  std::ifstream file(group / "cpu.max");
  std::string time;
  double period = 0;
  if (file >> time >> period && time != "max" && period > 0)
    return std::atof(time.c_str()) / period;
  const double quota = number_in(group / "cpu.cfs_quota_us");
  period = number_in(group / "cpu.cfs_period_us");
  return quota > 0 && period > 0 ? quota / period : 0;
}

// The smallest limit of a group and of the groups around it, up to the mount point, which inside a
// container is the container's own group.
double limit_around(std::filesystem::path mount, const std::string& group) {
  double least = limit_in(mount);
  for (const auto& part : std::filesystem::path(group).relative_path())
    least = smaller(least, limit_in(mount /= part));
  return least;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string host_identity() {
  std::string all;
  for (const std::string& part :
       {first_line_of("/proc/sys/kernel/random/boot_id"), link_target("/proc/self/ns/net"),
        link_target("/proc/self/ns/pid"), std::to_string(::geteuid())}) {
    if (part.empty()) return {};
    all += (all.empty() ? "" : " ") + part;
  }
  return all;
}

std::int64_t machine_memory() { return ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE); }

std::string machine_text() {
  std::string text = in_quotes(host_name());
  std::string system = value_in("/etc/os-release", "PRETTY_NAME=");
  std::erase(system, '"');
  if (!system.empty()) text += ", " + system;
  text += ", " + counted(std::thread::hardware_concurrency(), "processor");
  const std::string processor = value_in("/proc/cpuinfo", "model name\t: ");
  return processor.empty() ? text : text + " (" + processor + ")";
}

std::string random_name(std::size_t digits) {
  std::random_device device;
  std::uniform_int_distribution<int> digit(0, 15);
  std::string name(digits, '0');
  for (char& each : name) each = "0123456789abcdef"[digit(device)];
  return name;
}

// The line "0::/system.slice/run.scope" names the group of version 2, and "4:cpu,cpuacct:/run" the
// group of version 1. The latter is mounted in a folder named after the controllers, or in "cpu".
int processor_quota(const std::filesystem::path& proc, const std::filesystem::path& groups) {
  double least = smaller(limit_in(groups), limit_in(groups / "cpu"));
  std::ifstream file(proc / "self" / "cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t begin = line.find(':') + 1;
    const std::size_t end = line.find(':', begin);
    if (begin == 0 || end == std::string::npos) continue;
    const std::string controllers = line.substr(begin, end - begin);
    const std::string group = line.substr(end + 1);
    if (controllers.empty()) {
      least = smaller(least, limit_around(groups, group));
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      least = smaller(least, limit_around(groups / controllers, group));
      least = smaller(least, limit_around(groups / "cpu", group));
    }
  }
  return static_cast<int>(std::ceil(least));
}

int usable_processors(const std::filesystem::path& proc, const std::filesystem::path& groups) {
  const int processors = processors_of_scheduler();
  const int quota = processor_quota(proc, groups);
  return std::max(1, quota > 0 ? std::min(processors, quota) : processors);
}

}  // namespace decent
