#pragma once
// Which checkpoint to read, agreed on by all workers, whoever has which of its files.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "decent/checkpoint/manifest.h"
#include "decent/comm/world.h"
#include "decent/core/file.h"
#include "decent/core/safetensors.h"

namespace decent {

/// A replica's file, mapped and checked against the manifest.
class ReplicaFile {
 public:
  /// Throws CheckpointDamaged naming the file where it is missing or not what was saved.
  ReplicaFile(const std::filesystem::path& folder, const CheckpointFile& expected);
  /// The same for bytes that came from another worker.
  ReplicaFile(std::string bytes, const CheckpointFile& expected);

  std::string_view bytes() const;
  /// nullptr where it has no tensor of that name.
  const TensorView* find(std::string_view name) const { return tensors_.find(name); }

 private:
  void read(const CheckpointFile& expected, const std::string& name);

  std::optional<MappedFile> file_;
  std::string memory_;
  Safetensors tensors_;
};

/// A checkpoint that all workers have agreed on.
struct FoundCheckpoint {
  std::filesystem::path folder;  // on this worker, where it may lack files or not exist
  Manifest manifest;
  std::vector<int> readers;        // by replica: the worker that reads it; -1: nobody has it
  std::map<int, ReplicaFile> own;  // the replicas that this worker reads, by number
  bool whole() const;              // no replica is missing
  int first_replica() const;       // the lowest that there is
};

struct CheckpointSearch {
  bool allow_missing = false;  // checkpoint.allow_missing
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

/// The newest whole checkpoint among those in `checkpoints`, each worker's own folder of that
/// place; nothing where there is none. What stands there and is not whole is warned of and passed
/// over. Throws CheckpointDamaged where none is whole but one only lacks replicas, saying how to go
/// on without them. Collective.
std::optional<FoundCheckpoint> find_newest_checkpoint(World& world, int rank,
                                                      const std::filesystem::path& checkpoints,
                                                      const CheckpointSearch& search);

/// The checkpoint in `folder`. Throws CheckpointDamaged naming the file that is, UserError where
/// the folder is no checkpoint at all. Collective.
FoundCheckpoint open_checkpoint(World& world, int rank, const std::filesystem::path& folder,
                                const CheckpointSearch& search);

}  // namespace decent
