#pragma once
// A manifest to begin with.

#include <string>

#include "decent/checkpoint/manifest.h"

namespace decent::testing {

inline Manifest example(std::int64_t step = 500) {
  return {.program = "0.1.0 (build 0123456789ab)",
          .step = step,
          .epoch = 2,
          .consumed = 1024,
          .epochs_done = 2.7102272727272725,
          .world_size = 2,
          .metrics = {{"loss", 0.1 + 0.2}, {"accuracy", 0.96875}},
          .recipe = "name: digits\nseed: 0\n",
          .facts = {{"seed", "0"}, {"parameter fc.weight", "float32[10, 64]"}},
          .files = {{"rank-0000.safetensors", 214856, std::string(32, 'a')},
                    {"rank-0001.safetensors", 214857, std::string(32, 'b')}}};
}

/// Of four workers on two machines whose copies were alike: the files of replicas 0 and 2 hold
/// everything.
inline Manifest example_alike() {
  Manifest manifest = example();
  manifest.world_size = 4;
  manifest.files.clear();
  for (const int holder : {0, 0, 2, 2}) {
    const auto replica = static_cast<std::int64_t>(manifest.files.size());
    manifest.files.push_back({.name = replica_file_name(replica),
                              .bytes = 214856,
                              .checksum = std::string(32, 'a'),
                              .shared_in = holder});
  }
  return manifest;
}

/// Of three workers, of which the one in the middle was lost.
inline Manifest example_of_survivors() {
  Manifest manifest = example();
  manifest.world_size = 3;
  manifest.files[1].name = replica_file_name(2);
  manifest.files.insert(manifest.files.begin() + 1, CheckpointFile());
  manifest.lost_at = 1767323045.25;
  return manifest;
}

}  // namespace decent::testing
