// Reads ONNX files and says what came of each and what it cost, for tests of hostile files:
//
//     onnx_read FILE..
//
// prints a line for each: "ok" or "refused", the seconds of processor time it took, by how many
// bytes the process had grown at its largest, and the message, with "\n" where it has another line.

#include <malloc.h>

#include <ctime>
#include <fstream>
#include <iostream>
#include <string>

#include "decent/core/error.h"
#include "decent/onnx/format/read.h"

namespace {

// A line of /proc/self/status, in bytes.
long status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return std::stol(line.substr(key.size() + 1)) * 1024;
  }
  return -1;
}

// From now on VmHWM is the largest size since now.
long start_measuring() {
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
  return status_bytes("VmHWM");
}

// Empty where the file is read.
std::string refusal(const char* path) {
  try {
    decent::onnx::read_model(path);
    return "";
  } catch (const decent::UserError& error) {
    return error.what();
  }
}

std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) line += c == '\n' ? std::string("\\n") : std::string(1, c);
  return line;
}

void read(const char* path) {
  const long before = start_measuring();
  const std::clock_t start = std::clock();
  const std::string message = refusal(path);
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::cout << (message.empty() ? "ok" : "refused") << '\t' << seconds << '\t'
            << status_bytes("VmHWM") - before << '\t' << on_one_line(message) << std::endl;
}

}  // namespace

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) read(arguments[i]);
  return 0;
}
