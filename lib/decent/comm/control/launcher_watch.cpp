#include "decent/comm/control/launcher_watch.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

namespace decent {
namespace {

std::string content_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The variable's value when a process was started; variables are separated by zero bytes.
std::string mark_of(const std::filesystem::path& process, const std::string& name) {
  const std::string variables = '\0' + content_of(process / "environ");
  const std::size_t begin = variables.find('\0' + name + '=');
  if (begin == std::string::npos) return "";
  return variables.substr(begin + 1, variables.find('\0', begin + 1) - begin - 1);
}

// From "12 (the (name) of it) S 7 9 ..": what follows the last parenthesis is state, parent, group.
struct Relations {
  pid_t parent = 0;
  pid_t group = 0;
};

Relations relations_of(const std::filesystem::path& process) {
  const std::string stat = content_of(process / "stat");
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || stat.size() < name_end + 5) return {};
  char* parent_end = nullptr;
  const long parent = std::strtol(stat.c_str() + name_end + 4, &parent_end, 10);
  return {static_cast<pid_t>(parent), static_cast<pid_t>(std::atol(parent_end))};
}

pid_t parent_of(const std::filesystem::path& process) { return relations_of(process).parent; }

}  // namespace

std::optional<pid_t> process_group(const std::filesystem::path& process) {
  const pid_t group = relations_of(process).group;
  return group > 0 ? std::optional(group) : std::nullopt;
}

std::optional<pid_t> find_launcher(const std::string& mark, const std::filesystem::path& proc) {
  const std::string own = mark_of(proc / "self", mark);
  if (own.empty()) return std::nullopt;
  pid_t process = parent_of(proc / "self");
  while (process > 1 && mark_of(proc / std::to_string(process), mark) == own) {
    process = parent_of(proc / std::to_string(process));
  }
  if (process < 1) return std::nullopt;
  return process;
}

LauncherWatch watch_launcher(const Launch& launch) {
  LauncherWatch watch;
  if (!launch.launcher.empty()) watch.name = launch.launcher;
  if (launch.supervisor >= 0) {
    watch.ended = Socket(::fcntl(launch.supervisor, F_DUPFD_CLOEXEC, 0));
  } else if (const auto launcher = find_launcher(launch.launcher_mark)) {
    watch.ended = Socket(static_cast<int>(::syscall(SYS_pidfd_open, *launcher, 0)));
  }
  return watch;
}

}  // namespace decent
