// How long the import of an .onnx file takes, from its path to a module:  bench_import FILE
// Prints JSON.

#include <chrono>
#include <cstdio>

#include "decent/model/model.h"
#include "decent/model/onnx/import.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  decent::use_plain_executor();
  const auto begin = std::chrono::steady_clock::now();
  const decent::OnnxImport imported = decent::import_onnx(argv[1], {});
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("{\"seconds\": %.6f, \"nodes\": %zu}\n", seconds.count(), imported.translation.nodes);
}
