#include "decent/report/page/run_log.h"

#include <string_view>

#include "decent/core/file.h"

namespace decent {
namespace {

constexpr std::size_t kMostWarnings = 200;

// "2026-11-23 06:01:42.333 I text"
bool begins_line(std::string_view line) {
  return line.size() > 26 && line[4] == '-' && line[7] == '-' && line[10] == ' ' &&
         line[13] == ':' && line[19] == '.' && line[23] == ' ' && line[25] == ' ';
}

}  // namespace

std::vector<LogMessage> warnings_in(const std::filesystem::path& path) {
  std::vector<LogMessage> all;
  if (!std::filesystem::exists(path)) return all;
  bool in_warning = false;
  for_each_line(path, [&](std::string_view line, bool) {
    if (!begins_line(line)) {
      if (in_warning) all.back().text += "\n" + std::string(line);
      return;
    }
    in_warning = line[24] == 'W' || line[24] == 'E';
    if (in_warning) all.push_back({std::string(line.substr(0, 19)), std::string(line.substr(26))});
  });
  if (all.size() > kMostWarnings) all.erase(all.begin(), all.end() - kMostWarnings);
  return all;
}

}  // namespace decent
