// Reads an ONNX file and says what came of it, in one line a field, for tests of hostile files:
//
//     onnx_read FILE
//
// prints "ok: .." (exit code 0) or the error (2), then the time in seconds and by how many bytes
// the process has grown, at its largest, without the pages of mapped files.

#include <chrono>
#include <exception>
#include <fstream>
#include <iostream>
#include <string>

#include "decent/core/error.h"
#include "decent/model/onnx/read.h"

namespace {

// A line of /proc/self/status, in bytes.
long status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key + ":")) return std::stol(line.substr(key.size() + 1)) * 1024;
  }
  return -1;
}

int read(const char* path) {
  try {
    const decent::onnx::Model model = decent::onnx::read_model(path);
    std::cout << "ok: opset " << model.opset() << ", " << model.graph.nodes.size() << " nodes, "
              << model.graph.initializers.size() << " initializers\n";
    return 0;
  } catch (const decent::UserError& error) {
    std::cout << "error: " << error.what() << '\n';
    return 2;
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 1;
  const long before = status_bytes("VmHWM");
  const auto start = std::chrono::steady_clock::now();
  const int code = read(arguments[1]);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  std::cout << "seconds: " << time.count() << "\ngrown: " << status_bytes("VmHWM") - before << '\n';
  return code;
}
