#include "decent/core/host.h"

#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

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

}  // namespace decent
