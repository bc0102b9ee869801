// Saves checkpoints of one worker, as decent-train does in the background, and prints for each the
// seconds that writing took: bench_save FOLDER MEGABYTES ROUNDS.

#include <ATen/ops/rand.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/resume/replica_image.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const decent::CheckpointFolder folder(argv[1]);
  const std::int64_t elements = std::atoll(argv[2]) * 1'000'000 / 4;
  // About as many tensors as a model of that size has.
  decent::NamedTensors tensors;
  for (int i = 0; i < 50; ++i) {
    tensors.emplace_back("model." + std::to_string(i), at::rand({elements / 50}));
  }
  decent::ReplicaImage image;
  for (std::int64_t step = 0; step < std::atoll(argv[3]); ++step) {
    image.copy(tensors);
    const auto begin = std::chrono::steady_clock::now();
    decent::Manifest manifest{.program = "bench", .step = step};
    manifest.files.push_back(decent::write_replica(folder.begin(step), 0, image.bytes()));
    folder.publish(manifest);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::printf("%.6f\n", seconds.count());
    folder.remove(step);
  }
}
