#include "decent/core/host.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "decent/core/quote.h"
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

}  // namespace decent
