#include "decent/resume/local_checkpoints.h"

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/checkpoint/checksum.h"
#include "decent/checkpoint/manifest.h"
#include "decent/comm/gather.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/resume/compatibility.h"

namespace decent {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LocalCheckpoint, step, digest, error, unreadable, replicas,
                                   metrics, measure, pending)

namespace {

// Finds replicas by their file names, which works without a manifest, too.
std::vector<int> replicas_in(const std::filesystem::path& folder) {
  std::vector<int> replicas;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    const int replica = replica_in_name(entry->path().filename().string());
    if (replica >= 0) replicas.push_back(replica);
  }
  std::sort(replicas.begin(), replicas.end());
  return replicas;
}

std::string read_manifest(const std::filesystem::path& folder, bool has_replicas) {
  const std::filesystem::path file = folder / kManifestName;
  std::error_code failed;
  if (std::filesystem::exists(file, failed)) return read_text(file);
  if (has_replicas || step_in_name(folder.filename().string()) >= 0) {
    throw CheckpointDamaged("'" + folder.string() + "' is damaged: it has no manifest.json");
  }
  throw UserError(
      "'" + folder.string() +
      "' is no checkpoint and no run: it has neither manifest.json nor checkpoints. Give a run "
      "(runs/NAME), one of its checkpoints (runs/NAME/checkpoints/step-00000500), or auto");
}

// The same on all machines that have a part of the checkpoint: paths in their recipes may differ.
std::string identity_of(const Manifest& manifest) {
  std::string text = std::to_string(manifest.step);
  for (const CheckpointFile& file : manifest.files) text += " " + file.checksum;
  return checksum_of(text);
}

// `step`: the step in the folder's name; -1 if the name says none.
LocalCheckpoint examine(const std::filesystem::path& folder, std::int64_t step) {
  LocalCheckpoint local{.step = step, .replicas = replicas_in(folder)};
  try {
    const std::string text = read_manifest(folder, !local.replicas.empty());
    const Manifest manifest = parse_manifest(text, (folder / kManifestName).string());
    if (step >= 0 && step != manifest.step) {
      throw CheckpointDamaged("'" + folder.string() +
                              "' is damaged: its manifest.json is of step " +
                              std::to_string(manifest.step));
    }
    local.step = manifest.step;
    local.digest = identity_of(manifest);
    local.metrics = manifest.metrics;
    local.measure = measure_of(manifest.facts);
    local.pending = manifest.evaluation_pending;
  } catch (const CheckpointDamaged& error) {
    local.error = error.what();
  } catch (const UserError& error) {  // also a file that cannot be read
    local.error = error.what();
    local.unreadable = true;
  }
  return local;
}

void add_holders(Candidate& candidate, const LocalCheckpoint& local, std::size_t rank) {
  for (int replica : local.replicas) {
    candidate.holders[replica].push_back(static_cast<int>(rank));
  }
}

void add_manifest(Candidate& candidate, const LocalCheckpoint& local, int rank) {
  std::vector<int>& workers = candidate.with_manifest;
  const bool counts = workers.empty() || (candidate.pending && !local.pending);
  workers.insert(counts ? workers.begin() : workers.end(), rank);
  if (!counts) return;
  candidate.metrics = local.metrics;
  candidate.measure = local.measure;
  candidate.pending = local.pending;
}

}  // namespace

std::vector<LocalCheckpoint> local_checkpoints_in(const std::filesystem::path& checkpoints) {
  const CheckpointFolder folder(checkpoints);
  std::vector<LocalCheckpoint> found;
  std::set<std::int64_t> seen;
  for (std::int64_t step : folder.steps()) {
    seen.insert(step);
    found.push_back(examine(folder.path_of(step), step));
  }
  for (std::int64_t step : folder.steps_being_written()) {
    if (seen.count(step) > 0) continue;
    found.push_back({.step = step, .replicas = replicas_in(folder.writing_path_of(step))});
  }
  return found;
}

std::vector<LocalCheckpoint> local_checkpoint_at(const std::filesystem::path& folder) {
  std::error_code failed;
  if (!std::filesystem::is_directory(folder, failed)) return {};
  return {examine(folder, -1)};
}

CheckpointsByRank share_local_checkpoints(const Team& team,
                                          const std::vector<LocalCheckpoint>& own) {
  return team.gather("local checkpoints", own);
}

std::vector<Candidate> candidates_in(const CheckpointsByRank& by_rank) {
  std::map<std::pair<std::int64_t, std::string>, Candidate> found;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (const LocalCheckpoint& local : by_rank[rank]) {
      if (local.digest.empty()) continue;
      Candidate& candidate = found[{local.step, local.digest}];
      candidate.step = local.step;
      candidate.digest = local.digest;
      add_manifest(candidate, local, static_cast<int>(rank));
      add_holders(candidate, local, rank);
    }
  }
  // Files in a folder without a manifest count, too: checksums tell whether they belong.
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    for (const LocalCheckpoint& local : by_rank[rank]) {
      if (!local.digest.empty()) continue;
      for (auto& [key, candidate] : found) {
        if (local.step < 0 || local.step == candidate.step) add_holders(candidate, local, rank);
      }
    }
  }
  std::vector<Candidate> candidates;
  for (auto& [key, candidate] : found) candidates.push_back(std::move(candidate));
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
    if (a.step != b.step) return a.step > b.step;
    return a.with_manifest.size() > b.with_manifest.size();
  });
  return candidates;
}

}  // namespace decent
