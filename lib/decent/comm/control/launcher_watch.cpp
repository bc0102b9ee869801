#include "decent/comm/control/launcher_watch.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "decent/core/host.h"

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

// From "12 (the (name) of it) S 7 9 ..": what follows the last parenthesis is state, parent, group,
// and after 16 other fields the time at which the process began, in ticks since the boot.
struct Relations {
  pid_t process = 0;
  pid_t parent = 0;
  pid_t group = 0;
  std::string begin = {};
};

Relations relations_of(const std::filesystem::path& process) {
  constexpr int kBetweenGroupAndBegin = 16;
  const std::string stat = content_of(process / "stat");
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return {};
  Relations relations{.process = static_cast<pid_t>(std::atol(stat.c_str()))};
  std::istringstream fields(stat.substr(name_end + 1));
  std::string skipped;
  fields >> skipped >> relations.parent >> relations.group;
  for (int i = 0; i < kBetweenGroupAndBegin; ++i) fields >> skipped;
  fields >> relations.begin;
  return relations;
}

pid_t parent_of(const std::filesystem::path& process) { return relations_of(process).parent; }

// This process, or the ancestor that the launcher started. Empty if this process lacks the mark.
std::filesystem::path started_by_launcher(const std::string& mark,
                                          const std::filesystem::path& proc) {
  const std::string own = mark_of(proc / "self", mark);
  if (own.empty()) return {};
  std::filesystem::path process = proc / "self";
  for (pid_t parent = parent_of(process); parent > 1; parent = parent_of(process)) {
    const std::filesystem::path around = proc / std::to_string(parent);
    if (mark_of(around, mark) != own) break;
    process = around;
  }
  return process;
}

}  // namespace

std::optional<pid_t> process_group(const std::filesystem::path& process) {
  const pid_t group = relations_of(process).group;
  return group > 0 ? std::optional(group) : std::nullopt;
}

std::optional<pid_t> find_launcher(const std::string& mark, const std::filesystem::path& proc) {
  const std::filesystem::path started = started_by_launcher(mark, proc);
  if (started.empty()) return std::nullopt;
  const pid_t launcher = parent_of(started);
  return launcher > 0 ? std::optional(launcher) : std::nullopt;
}

std::string started_process(const std::string& mark, const std::filesystem::path& proc) {
  const std::filesystem::path started = started_by_launcher(mark, proc);
  if (started.empty()) return "";
  const Relations relations = relations_of(started);
  const std::string machine = host_identity();
  if (machine.empty() || relations.begin.empty()) return "";
  return machine + " " + std::to_string(relations.process) + " " + relations.begin;
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
