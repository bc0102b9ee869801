#pragma once
// Which checkpoint to read, agreed on by all workers, whoever has which of its files.

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
  std::filesystem::path folder;  // on this worker, where it may lack files or not exist
  Manifest manifest;
  std::vector<int> readers;        // by replica: the worker that reads it; -1: nobody can
  std::map<int, ReplicaFile> own;  // the replicas that this worker reads, by number
  /// Where copies are alike (Manifest::copies_alike): the workers that can read a file with
  /// parameters and optimizer state, and such a file where none of `own` is one.
  std::vector<int> with_everything;
  std::optional<ReplicaFile> other_with_everything;

  bool whole() const;         // no replica is missing
  int first_replica() const;  // the lowest that there is
  /// A file that has parameters and optimizer state; null where this worker can read none.
  const ReplicaFile* everything() const;
};

struct CheckpointSearch {
  bool allow_missing = false;  // checkpoint.allow_missing
  bool must_find = false;      // where all that there is is damaged, that is an error
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

/// The newest whole checkpoint among those in `checkpoints`, each worker's own folder of that
/// place; nothing where there is none. Checkpoints that are not whole are skipped with a warning.
/// Collective. Throws SharedError: checkpoint_damaged where none is whole but one only lacks
/// replicas, saying how to go on without them; user_error where none is whole but one is of a
/// format that this program does not know, or cannot be read.
std::optional<FoundCheckpoint> find_newest_checkpoint(const Team& team,
                                                      const std::filesystem::path& checkpoints,
                                                      const CheckpointSearch& search);

/// Which checkpoint is the best one.
struct BestBy {
  std::string metric;  // of their evaluations
  bool higher_is_better = false;
};

/// The one with the best value, the newest of equals. Collective. Throws SharedError: user_error
/// where none was evaluated by that metric, checkpoint_damaged where the best one is not whole.
FoundCheckpoint find_best_checkpoint(const Team& team, const std::filesystem::path& checkpoints,
                                     const BestBy& best, const CheckpointSearch& search);

/// The checkpoint in `folder`. Collective. Throws SharedError: checkpoint_damaged naming the file
/// that is, user_error where the folder is no checkpoint at all.
FoundCheckpoint open_checkpoint(const Team& team, const std::filesystem::path& folder,
                                const CheckpointSearch& search);

}  // namespace decent
