// How long opening a model file takes, from its path to a module:  bench_import FILE
// Prints JSON.

#include <chrono>
#include <cstdio>

#include "decent/model/formats.h"
#include "decent/model/model.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  decent::use_plain_executor();
  const auto begin = std::chrono::steady_clock::now();
  const decent::Model model = decent::open_model(argv[1]);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  std::printf("{\"seconds\": %.6f, \"parameters\": %zu}\n", seconds.count(),
              model.parameters().size());
}
