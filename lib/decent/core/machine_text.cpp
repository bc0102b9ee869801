#include "decent/core/machine_text.h"

#include <fstream>
#include <thread>

#include "decent/core/host.h"
#include "decent/core/quote.h"
#include "decent/core/text.h"

namespace decent {
namespace {

// The rest of the first line that begins with `key`; "" if there is no such line.
std::string value_in(const char* file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key)) return line.substr(key.size());
  return "";
}

}  // namespace

std::string machine_text() {
  std::string text = in_quotes(host_name());
  std::string system = value_in("/etc/os-release", "PRETTY_NAME=");
  std::erase(system, '"');
  if (!system.empty()) text += ", " + system;
  text += ", " + counted(std::thread::hardware_concurrency(), "processor");
  const std::string processor = value_in("/proc/cpuinfo", "model name\t: ");
  return processor.empty() ? text : text + " (" + processor + ")";
}

}  // namespace decent
