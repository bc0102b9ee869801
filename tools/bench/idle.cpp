// Loads LibTorch as decent-train does, uses nothing of it, and prints its own resident size in KiB.

#include <ATen/Parallel.h>

#include <cstdio>
#include <fstream>
#include <string>

int main() {
  at::get_num_threads();  // so that the linker keeps the library
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmRSS:", 0) == 0) std::printf("%s\n", line.c_str());
  }
}
