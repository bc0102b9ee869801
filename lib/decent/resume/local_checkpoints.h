#pragma once
// What the workers of a run have of which checkpoints, put together.

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
  std::int64_t step = -1;          // -1: of one that was named, whose manifest cannot be read
  std::string digest = {};         // the same wherever the checkpoint is; empty without a manifest
  std::string error = {};          // why there is none; empty where nothing is wrong with that
  bool unreadable = false;         // rather than damaged: a later version's, or no checkpoint
  std::vector<int> replicas = {};  // whose files are there
  Numbers metrics = {};            // of its evaluation, where it was evaluated
  Facts measure = {};              // what these mean: see measure_of
  bool pending = false;            // that evaluation is still to come; see Manifest
};

using CheckpointsByRank = std::vector<std::vector<LocalCheckpoint>>;

/// Every checkpoint in `checkpoints` under its own name, and those that were being written: where
/// another machine has the manifest, all parts were durable.
std::vector<LocalCheckpoint> local_checkpoints_in(const std::filesystem::path& checkpoints);

/// The checkpoint in `folder`; nothing where that is no folder.
std::vector<LocalCheckpoint> local_checkpoint_at(const std::filesystem::path& folder);

/// Everybody's, by rank. Collective.
CheckpointsByRank share_local_checkpoints(const Team& team,
                                          const std::vector<LocalCheckpoint>& own);

/// A checkpoint as all workers together have it. Where it was evaluated on some machines only, the
/// program was killed before it had written that down on the others: it counts as evaluated.
struct Candidate {
  std::int64_t step = 0;
  std::string digest;
  Numbers metrics = {};
  Facts measure = {};
  bool pending = true;
  std::vector<int> with_manifest = {};           // workers, first those whose manifest counts
  std::map<int, std::vector<int>> holders = {};  // replica -> workers
};

/// Newest first; of one step the one that more workers have.
std::vector<Candidate> candidates_in(const CheckpointsByRank& by_rank);

}  // namespace decent
