#include "decent/resume/checkpoint_sights.h"

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

namespace decent {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Sight, step, digest, error, unreadable, replicas)

namespace {

// By their names, so that they are found without a manifest, too.
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
  throw UserError("'" + folder.string() + "' is no checkpoint: it has no manifest.json");
}

// The same on all machines that have a part of it, whose recipes may name other paths.
std::string identity_of(const Manifest& manifest) {
  std::string text = std::to_string(manifest.step);
  for (const CheckpointFile& file : manifest.files) text += " " + file.checksum;
  return checksum_of(text);
}

// `step`: what its name promises; -1: nothing.
Sight look_at(const std::filesystem::path& folder, std::int64_t step) {
  Sight sight{.step = step, .replicas = replicas_in(folder)};
  try {
    const std::string text = read_manifest(folder, !sight.replicas.empty());
    const Manifest manifest = parse_manifest(text, (folder / kManifestName).string());
    if (step >= 0 && step != manifest.step) {
      throw CheckpointDamaged("'" + folder.string() +
                              "' is damaged: its manifest.json is of step " +
                              std::to_string(manifest.step));
    }
    sight.step = manifest.step;
    sight.digest = identity_of(manifest);
  } catch (const CheckpointDamaged& error) {
    sight.error = error.what();
  } catch (const UserError& error) {  // also a file that cannot be read
    sight.error = error.what();
    sight.unreadable = true;
  }
  return sight;
}

void add_holders(Candidate& candidate, const Sight& sight, std::size_t rank) {
  for (int replica : sight.replicas) {
    candidate.holders[replica].push_back(static_cast<int>(rank));
  }
}

}  // namespace

std::vector<Sight> look_into(const std::filesystem::path& checkpoints) {
  const CheckpointFolder folder(checkpoints);
  std::vector<Sight> sights;
  std::set<std::int64_t> seen;
  for (std::int64_t step : folder.steps()) {
    seen.insert(step);
    sights.push_back(look_at(folder.path_of(step), step));
  }
  for (std::int64_t step : folder.steps_being_written()) {
    if (seen.count(step) > 0) continue;
    sights.push_back({.step = step, .replicas = replicas_in(folder.writing_path_of(step))});
  }
  return sights;
}

std::vector<Sight> look_at_one(const std::filesystem::path& folder) {
  std::error_code failed;
  if (!std::filesystem::is_directory(folder, failed)) return {};
  return {look_at(folder, -1)};
}

std::vector<std::vector<Sight>> share_sights(World& world, const std::vector<Sight>& own) {
  return world.gather("sights", own);
}

std::vector<Candidate> candidates_in(const std::vector<std::vector<Sight>>& sights) {
  std::map<std::pair<std::int64_t, std::string>, Candidate> found;
  for (std::size_t rank = 0; rank < sights.size(); ++rank) {
    for (const Sight& sight : sights[rank]) {
      if (sight.digest.empty()) continue;
      Candidate& candidate = found[{sight.step, sight.digest}];
      candidate.step = sight.step;
      candidate.digest = sight.digest;
      candidate.with_manifest.push_back(static_cast<int>(rank));
      add_holders(candidate, sight, rank);
    }
  }
  // Files without a manifest of their own count: checksums tell whether they belong to it.
  for (std::size_t rank = 0; rank < sights.size(); ++rank) {
    for (const Sight& sight : sights[rank]) {
      if (!sight.digest.empty()) continue;
      for (auto& [key, candidate] : found) {
        if (sight.step < 0 || sight.step == candidate.step) add_holders(candidate, sight, rank);
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
