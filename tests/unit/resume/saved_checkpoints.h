#pragma once
// Checkpoints as a run leaves them in a folder.

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/checkpoint/checksum.h"
#include "decent/checkpoint/manifest.h"
#include "decent/core/file.h"
#include "decent/core/safetensors.h"

namespace decent::testing {

/// A safetensors file without tensors: its header is the JSON object {}.
inline const std::string& empty_replica() {
  static const std::string bytes = std::string("\x02\0\0\0\0\0\0\0", 8) + "{}";
  return bytes;
}

/// Saves a checkpoint of `replicas` empty replicas and gives its manifest. `copies_alike`: the
/// first holds everything.
inline Manifest save_checkpoint(const CheckpointFolder& folder, std::int64_t step,
                                const std::string& run, int replicas = 1,
                                bool copies_alike = false) {
  Manifest manifest;
  manifest.run = run;
  manifest.step = step;
  manifest.world_size = replicas;
  const std::filesystem::path writing = folder.begin(step);
  for (int replica = 0; replica < replicas; ++replica) {
    const std::string name = replica_file_name(replica);
    write_file(writing / name, empty_replica());
    manifest.files.push_back({name, empty_replica().size(), checksum_of(empty_replica())});
    if (copies_alike) manifest.files.back().shared_in = 0;
  }
  folder.publish(manifest);
  return manifest;
}

}  // namespace decent::testing
