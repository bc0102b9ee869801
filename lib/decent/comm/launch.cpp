#include "decent/comm/launch.h"

#include <algorithm>

#include "decent/comm/launchers/launcher.h"

namespace decent {
namespace {

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    if (comma > begin) parts.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return parts;
}

}  // namespace

Launch read_launch(const Variables& variables, const std::filesystem::path& proc) {
  Launch launch;
  launch.interfaces = split_at_commas(variables("GLOO_SOCKET_IFNAME").value_or(""));
  for (const Launcher* launcher : launchers()) {
    if (!launcher->started_this(variables)) continue;
    launch.launcher = launcher->name;
    launcher->read(LauncherVariables(variables, launcher->name, proc), launch);
    return launch;
  }
  return launch;
}

Launch read_launch() { return read_launch(environment_variable); }

}  // namespace decent
