#include "decent/train/checkpoint_search.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/checkpoint/checksum.h"
#include "decent/core/error.h"
#include "decent/core/text.h"

namespace decent {
namespace {

using Json = nlohmann::json;

constexpr const char* kManifest = "manifest.json";

// What one worker sees of one checkpoint.
struct Sight {
  std::int64_t step = 0;
  std::string digest;              // see identity_of; empty where its manifest is damaged
  std::string error;               // why
  bool unreadable = false;         // rather than damaged: a later version's, or no checkpoint
  std::vector<int> replicas = {};  // whose files are there
};

// A checkpoint as all workers together have it.
struct Candidate {
  std::int64_t step = 0;
  std::string digest;
  std::vector<int> with_manifest;                // workers
  std::map<int, std::vector<int>> holders = {};  // replica -> workers
};

std::string read_manifest(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kManifest;
  std::error_code failed;
  if (std::filesystem::exists(file, failed)) return read_text(file);
  const bool was_one = step_in_name(folder.filename().string()) >= 0 ||
                       std::filesystem::exists(folder / replica_file_name(0), failed);
  if (was_one) {
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
  Sight sight{.step = step, .digest = {}, .error = {}};
  try {
    const std::string text = read_manifest(folder);
    const Manifest manifest = parse_manifest(text, (folder / kManifest).string());
    if (step >= 0 && step != manifest.step) {
      throw CheckpointDamaged("'" + folder.string() +
                              "' is damaged: its manifest is that of step " +
                              std::to_string(manifest.step));
    }
    sight.step = manifest.step;
    sight.digest = identity_of(manifest);
    for (std::size_t replica = 0; replica < manifest.files.size(); ++replica) {
      std::error_code failed;
      if (std::filesystem::exists(folder / manifest.files[replica].name, failed)) {
        sight.replicas.push_back(static_cast<int>(replica));
      }
    }
  } catch (const CheckpointDamaged& error) {
    sight.error = error.what();
  } catch (const UserError& error) {  // also a file that cannot be read
    sight.error = error.what();
    sight.unreadable = true;
  }
  return sight;
}

Json to_json(const std::vector<Sight>& sights) {
  Json list = Json::array();
  for (const Sight& sight : sights) {
    list.push_back({sight.step, sight.digest, sight.error, sight.unreadable, sight.replicas});
  }
  return list;
}

std::vector<Sight> to_sights(const std::string& text) {
  std::vector<Sight> sights;
  for (const Json& entry : Json::parse(text)) {
    sights.push_back({.step = entry[0],
                      .digest = entry[1],
                      .error = entry[2],
                      .unreadable = entry[3],
                      .replicas = entry[4]});
  }
  return sights;
}

// Paths in messages need not be UTF-8.
std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<std::vector<Sight>> share_sights(World& world, const std::vector<Sight>& own) {
  std::vector<std::vector<Sight>> all;
  for (const Outcome& outcome : world.share("sights", {ExitCode::done, dump(to_json(own))})) {
    all.push_back(to_sights(outcome.message));
  }
  return all;
}

// Newest first; of one step the one that more workers have.
std::vector<Candidate> candidates_in(const std::vector<std::vector<Sight>>& all) {
  std::map<std::pair<std::int64_t, std::string>, Candidate> found;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    for (const Sight& sight : all[rank]) {
      if (sight.digest.empty()) continue;
      Candidate& candidate = found[{sight.step, sight.digest}];
      candidate.step = sight.step;
      candidate.digest = sight.digest;
      candidate.with_manifest.push_back(static_cast<int>(rank));
      for (int replica : sight.replicas) {
        candidate.holders[replica].push_back(static_cast<int>(rank));
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

// A worker reads its own replica where it can, the others are spread over those who have them.
std::vector<int> choose_readers(const Candidate& candidate, std::int64_t replicas, int workers) {
  std::vector<int> readers;
  for (int replica = 0; replica < replicas; ++replica) {
    const auto found = candidate.holders.find(replica);
    if (found == candidate.holders.end()) {
      readers.push_back(-1);
      continue;
    }
    const std::vector<int>& holders = found->second;
    const bool own =
        replicas == workers && std::find(holders.begin(), holders.end(), replica) != holders.end();
    readers.push_back(own ? replica : holders[static_cast<std::size_t>(replica) % holders.size()]);
  }
  return readers;
}

// One that cannot be used, and why.
struct Defect {
  bool only_missing = false;  // replicas are nowhere; those that are there are good
  std::string text;
};

std::string ranks_text(const std::vector<int>& ranks) {
  std::vector<std::string> texts;
  for (int rank : ranks) texts.push_back(std::to_string(rank));
  return (texts.size() == 1 ? "replica " : "replicas ") + join(texts);
}

// Searches among candidates; all workers do the same in step.
class Search {
 public:
  Search(World& world, int rank, const CheckpointSearch& options)
      : world_(world), rank_(rank), options_(options) {}

  /// Reads and checks all replicas. The defect where that fails.
  std::optional<Defect> open(const Candidate& candidate, const std::filesystem::path& folder,
                             FoundCheckpoint& found) {
    found = {};
    found.folder = folder;
    const std::string name = "candidate/" + std::to_string(number_++);
    found.manifest = share_manifest(name, candidate, folder);
    found.readers = choose_readers(candidate, found.manifest.world_size, workers_);
    const std::vector<std::string> damage = check_own(found);
    return settle(found, world_.share(name + "/checked", {ExitCode::done, dump(damage)}));
  }

  void know_workers(std::size_t workers) { workers_ = static_cast<int>(workers); }

 private:
  Manifest share_manifest(const std::string& name, const Candidate& candidate,
                          const std::filesystem::path& folder) {
    const int source = candidate.with_manifest.front();
    Outcome own;
    if (source == rank_) own.message = read_text(folder / kManifest);
    const auto texts = world_.share(name + "/manifest", own);
    return parse_manifest(texts[static_cast<std::size_t>(source)].message,
                          (folder / kManifest).string());
  }

  // By replica: why this worker cannot read it; empty where it can or need not.
  std::vector<std::string> check_own(FoundCheckpoint& found) const {
    std::vector<std::string> damage(found.readers.size());
    for (std::size_t replica = 0; replica < found.readers.size(); ++replica) {
      if (found.readers[replica] != rank_) continue;
      try {
        found.own.emplace(static_cast<int>(replica),
                          ReplicaFile(found.folder, found.manifest.files[replica]));
      } catch (const CheckpointDamaged& error) {
        damage[replica] = error.what();
      }
    }
    return damage;
  }

  std::optional<Defect> settle(FoundCheckpoint& found, const std::vector<Outcome>& outcomes) const {
    std::string first_damage;
    for (const Outcome& outcome : outcomes) {
      const Json damage = Json::parse(outcome.message);
      for (std::size_t replica = 0; replica < damage.size(); ++replica) {
        const std::string text = damage[replica];
        if (text.empty()) continue;
        if (first_damage.empty()) first_damage = text;
        found.readers[replica] = -1;
      }
    }
    std::vector<int> missing;
    for (std::size_t replica = 0; replica < found.readers.size(); ++replica) {
      if (found.readers[replica] < 0) missing.push_back(static_cast<int>(replica));
    }
    if (missing.empty()) return std::nullopt;
    const std::string place = "'" + found.folder.string() + "'";
    const bool any_left = missing.size() < found.readers.size();
    if (options_.allow_missing && any_left) {
      options_.warn("checkpoint " + place + ": " + ranks_text(missing) + " of " +
                    std::to_string(found.readers.size()) +
                    " cannot be read; the average of the others is used");
      return std::nullopt;
    }
    if (!first_damage.empty()) return Defect{.only_missing = false, .text = first_damage};
    return Defect{.only_missing = any_left,
                  .text = "checkpoint " + place + " is not whole: " + ranks_text(missing) + " of " +
                          std::to_string(found.readers.size()) + " (" +
                          replica_file_name(missing.front()) + (missing.size() > 1 ? ", .." : "") +
                          ") is on no worker"};
  }

  World& world_;
  int rank_;
  const CheckpointSearch& options_;
  int workers_ = 1;
  int number_ = 0;
};

const char* offer() {
  return ".\nTo go on from the average of the replicas that are left: --set "
         "checkpoint.allow_missing=true";
}

}  // namespace

ReplicaFile::ReplicaFile(const std::filesystem::path& folder, const CheckpointFile& expected) {
  const std::filesystem::path path = folder / expected.name;
  try {
    file_.emplace(path);
  } catch (const UserError& error) {
    throw CheckpointDamaged(std::string(error.what()) + " (a replica of the checkpoint)");
  }
  read(expected, path.string());
}

ReplicaFile::ReplicaFile(std::string bytes, const CheckpointFile& expected)
    : memory_(std::move(bytes)) {
  read(expected, expected.name);
}

std::string_view ReplicaFile::bytes() const {
  if (!file_) return memory_;
  return {reinterpret_cast<const char*>(file_->bytes().data()), file_->bytes().size()};
}

void ReplicaFile::read(const CheckpointFile& expected, const std::string& name) {
  if (bytes().size() != expected.bytes) {
    throw CheckpointDamaged("'" + name + "' is damaged: it has " + std::to_string(bytes().size()) +
                            " bytes, not " + std::to_string(expected.bytes));
  }
  if (checksum_of(bytes()) != expected.checksum) {
    throw CheckpointDamaged("'" + name + "' is damaged: its checksum is not that of manifest.json");
  }
  try {
    tensors_ = parse_safetensors(std::as_bytes(std::span(bytes())), name);
  } catch (const UserError& error) {
    throw CheckpointDamaged(error.what());
  }
}

bool FoundCheckpoint::whole() const {
  return std::find(readers.begin(), readers.end(), -1) == readers.end();
}

int FoundCheckpoint::first_replica() const {
  const auto there = [](int reader) { return reader >= 0; };
  return static_cast<int>(std::find_if(readers.begin(), readers.end(), there) - readers.begin());
}

std::optional<FoundCheckpoint> find_newest_checkpoint(World& world, int rank,
                                                      const std::filesystem::path& checkpoints,
                                                      const CheckpointSearch& search) {
  const CheckpointFolder folder(checkpoints);
  std::vector<Sight> own;
  for (std::int64_t step : folder.steps()) own.push_back(look_at(folder.path_of(step), step));
  const auto all = share_sights(world, own);
  std::set<std::string> told;
  for (const std::vector<Sight>& sights : all) {
    for (const Sight& sight : sights) {
      if (!sight.error.empty() && told.insert(sight.error).second)
        search.warn(sight.error + "; it is passed over");
    }
  }
  Search searching(world, rank, search);
  searching.know_workers(all.size());
  std::string incomplete;
  for (const Candidate& candidate : candidates_in(all)) {
    FoundCheckpoint found;
    const auto defect = searching.open(candidate, folder.path_of(candidate.step), found);
    if (!defect) return found;
    search.warn(defect->text + "; it is passed over");
    if (defect->only_missing && incomplete.empty()) incomplete = defect->text;
  }
  if (incomplete.empty()) return std::nullopt;
  throw SharedError(ExitCode::checkpoint_damaged, incomplete + offer());
}

FoundCheckpoint open_checkpoint(World& world, int rank, const std::filesystem::path& folder,
                                const CheckpointSearch& search) {
  std::error_code failed;
  std::vector<Sight> own;
  if (std::filesystem::is_directory(folder, failed)) own.push_back(look_at(folder, -1));
  const auto all = share_sights(world, own);
  const std::vector<Candidate> candidates = candidates_in(all);
  if (candidates.empty()) {
    for (const std::vector<Sight>& sights : all) {
      if (sights.empty()) continue;
      const Sight& sight = sights.front();
      throw SharedError(sight.unreadable ? ExitCode::user_error : ExitCode::checkpoint_damaged,
                        sight.error);
    }
    throw SharedError(ExitCode::user_error, "there is no checkpoint '" + folder.string() +
                                                "' (a folder like " +
                                                "runs/NAME/checkpoints/step-00000500)");
  }
  Search searching(world, rank, search);
  searching.know_workers(all.size());
  FoundCheckpoint found;
  const auto defect = searching.open(candidates.front(), folder, found);
  if (!defect) return found;
  throw SharedError(
      ExitCode::checkpoint_damaged,
      defect->text +
          (found.first_replica() < static_cast<int>(found.readers.size()) ? offer() : ""));
}

}  // namespace decent
