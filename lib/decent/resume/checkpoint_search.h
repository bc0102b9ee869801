#pragma once
// Finding a checkpoint that all workers agree on, even if each has only some of its files.

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "decent/checkpoint/manifest.h"
#include "decent/comm/team.h"
#include "decent/resume/replica_file.h"

namespace decent {

/// A checkpoint that all workers have agreed on.
struct FoundCheckpoint {
  std::filesystem::path folder;  // on this worker; may lack files or not exist
  Manifest manifest;
  std::vector<int> readers;        // by replica: the worker that reads it; -1: nobody can
  std::map<int, ReplicaFile> own;  // the replicas that this worker reads, by number
  /// If copies are alike (Manifest::copies_alike): the workers that can read a file with
  /// parameters and optimizer state, and such a file if `own` has none.
  std::vector<int> with_everything;
  std::optional<ReplicaFile> other_with_everything;

  bool whole() const;         // no replica is missing but those of lost workers
  int first_replica() const;  // the lowest number of a replica that is not missing
  /// A file that has parameters and optimizer state; null if this worker can read none.
  const ReplicaFile* everything() const;
};

struct CheckpointSearch {
  bool allow_missing = false;  // checkpoint.allow_missing
  bool must_find = false;      // it is an error if all checkpoints are damaged
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

/// The newest whole checkpoint in the folder `checkpoints`, which each worker looks up on its own
/// machine; nothing if there is none. Checkpoints that are not whole are skipped with a warning.
/// Collective. Throws SharedError: checkpoint_damaged if none is whole but one only lacks
/// replicas, saying how to go on without them; user_error if none is whole but one cannot be read
/// or has a format that this program does not know.
std::optional<FoundCheckpoint> find_newest_checkpoint(const Team& team,
                                                      const std::filesystem::path& checkpoints,
                                                      const CheckpointSearch& search);

/// Which checkpoint is the best one.
struct BestBy {
  std::string metric;  // of the checkpoints' evaluations
  bool higher_is_better = false;
};

/// The checkpoint with the best value, the newest of equals. Collective. Throws SharedError:
/// user_error if none was evaluated by the metric, checkpoint_damaged if the best is not whole.
FoundCheckpoint find_best_checkpoint(const Team& team, const std::filesystem::path& checkpoints,
                                     const BestBy& best, const CheckpointSearch& search);

/// The checkpoint in `folder`. Collective. Throws SharedError: checkpoint_damaged naming the
/// damaged file, user_error if the folder is no checkpoint at all.
FoundCheckpoint open_checkpoint(const Team& team, const std::filesystem::path& folder,
                                const CheckpointSearch& search);

}  // namespace decent
