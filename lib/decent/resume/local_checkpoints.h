#pragma once
// Which parts of which checkpoints the workers of a run have, put together.

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "decent/checkpoint/manifest.h"
#include "decent/comm/team.h"

namespace decent {

/// What one worker sees of one checkpoint.
struct LocalCheckpoint {
  std::int64_t step = -1;          // -1: the user named the folder, and it has no valid manifest
  std::string digest = {};         // the same wherever the checkpoint is; empty without a manifest
  std::string error = {};          // why the digest is missing; empty if that is not an error
  bool unreadable = false;         // not damaged, but of a later version, or no checkpoint
  std::vector<int> replicas = {};  // the replicas whose files are there
  Numbers metrics = {};            // of its evaluation, if it was evaluated
  Facts measure = {};              // what the metrics mean: see measure_of
  bool pending = false;            // its evaluation is still to come; see Manifest
};

using CheckpointsByRank = std::vector<std::vector<LocalCheckpoint>>;

/// Every checkpoint in `checkpoints` under its own name, and those that were being written: if
/// another machine has the manifest of such a checkpoint, all its parts are durable.
std::vector<LocalCheckpoint> local_checkpoints_in(const std::filesystem::path& checkpoints);

/// The checkpoint in `folder`; empty if that is no folder.
std::vector<LocalCheckpoint> local_checkpoint_at(const std::filesystem::path& folder);

/// The checkpoints of all workers, by rank. Collective.
CheckpointsByRank share_local_checkpoints(const Team& team,
                                          const std::vector<LocalCheckpoint>& own);

/// A checkpoint as all workers together have it. It counts as evaluated if any machine's manifest
/// has the evaluation: the program was then killed before it had noted it on the others.
struct Candidate {
  std::int64_t step = 0;
  std::string digest;
  Numbers metrics = {};
  Facts measure = {};
  bool pending = true;
  std::vector<int> with_manifest = {};           // workers, first the one whose manifest counts
  std::map<int, std::vector<int>> holders = {};  // replica -> workers
};

/// The candidates, newest first; of the same step, first the one that more workers have.
std::vector<Candidate> candidates_in(const CheckpointsByRank& by_rank);

}  // namespace decent
