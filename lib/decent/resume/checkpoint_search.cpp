#include "decent/resume/checkpoint_search.h"

#include <algorithm>
#include <set>

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/checkpoint/retention.h"
#include "decent/comm/gather.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/resume/local_checkpoints.h"

namespace decent {
namespace {

constexpr const char* kOffer =
    ".\nTo go on from the average of the replicas that are left: --set "
    "checkpoint.allow_missing=true";

// A worker reads its own replica if it has it. Other replicas are spread over their holders.
std::vector<int> choose_readers(const Candidate& candidate, const Manifest& manifest, int workers) {
  const std::int64_t replicas = manifest.world_size;
  const std::vector<int> lost = manifest.lost();
  std::vector<int> readers;
  for (int replica = 0; replica < replicas; ++replica) {
    const auto found = candidate.holders.find(replica);
    if (found == candidate.holders.end() || std::ranges::count(lost, replica) > 0) {
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

// The replicas that the checkpoint should have and nobody can read.
std::vector<int> missing_in(const FoundCheckpoint& found) {
  const std::vector<int> lost = found.manifest.lost();
  std::vector<int> missing;
  for (int replica = 0; replica < static_cast<int>(found.readers.size()); ++replica) {
    if (found.readers[static_cast<std::size_t>(replica)] < 0 &&
        std::ranges::count(lost, replica) == 0)
      missing.push_back(replica);
  }
  return missing;
}

std::string ranks_text(const std::vector<int>& ranks) {
  std::vector<std::string> texts;
  for (int rank : ranks) texts.push_back(std::to_string(rank));
  return (texts.size() == 1 ? "replica " : "replicas ") + join(texts);
}

// Why a candidate cannot be used.
struct Defect {
  bool only_missing = false;  // some replicas are on no worker; the others are good
  bool others_do = false;     // the average of the other replicas can be used
  std::string text;
};

// By replica: why it cannot be read; empty if it can be read or need not be.
using Damage = std::vector<std::string>;

std::string file_names(const FoundCheckpoint& found, const std::vector<int>& replicas) {
  std::vector<std::string> names;
  for (const int replica : replicas)
    names.push_back(found.manifest.files[static_cast<std::size_t>(replica)].name);
  return join(names);
}

// Goes through candidates, in the same order on all workers.
class Search {
 public:
  Search(const Team& team, const CheckpointSearch& options) : team_(team), options_(options) {}

  /// Reads and checks all replicas. Returns the defect, if there is one. `writing`: the folder that
  /// may hold files of this worker that were never renamed.
  std::optional<Defect> open(const Candidate& candidate, const std::filesystem::path& folder,
                             const std::filesystem::path& writing, FoundCheckpoint& found) {
    found = {};
    found.folder = folder;
    const std::string name = "candidate/" + std::to_string(number_++);
    found.manifest = share_manifest(name, candidate, folder);
    found.readers = choose_readers(candidate, found.manifest, team_.size());
    const Damage damage =
        forget_damaged(found, team_.gather(name + "/checked", read_own(found, writing)));
    if (found.manifest.copies_alike()) share_everything(name, writing, found);
    return judge(found, damage);
  }

 private:
  Manifest share_manifest(const std::string& name, const Candidate& candidate,
                          const std::filesystem::path& folder) {
    const int source = candidate.with_manifest.front();
    const std::string own =
        source == team_.rank() ? read_text(folder / kManifestName) : std::string();
    const std::vector<std::string> texts = team_.gather(name + "/manifest", own);
    return parse_manifest(texts[static_cast<std::size_t>(source)],
                          (folder / kManifestName).string());
  }

  static ReplicaFile read(const FoundCheckpoint& found, int replica,
                          const std::filesystem::path& writing) {
    const CheckpointFile& file = found.manifest.files[static_cast<std::size_t>(replica)];
    const bool renamed = writing.empty() || std::filesystem::exists(found.folder / file.name);
    return ReplicaFile(renamed ? found.folder : writing, file);
  }

  // Reads the replicas that are assigned to this worker.
  Damage read_own(FoundCheckpoint& found, const std::filesystem::path& writing) const {
    Damage damage(found.readers.size());
    for (std::size_t replica = 0; replica < found.readers.size(); ++replica) {
      if (found.readers[replica] != team_.rank()) continue;
      try {
        found.own.emplace(static_cast<int>(replica),
                          read(found, static_cast<int>(replica), writing));
      } catch (const CheckpointDamaged& error) {
        damage[replica] = error.what();
      }
    }
    return damage;
  }

  // One of the files that hold everything.
  static std::optional<ReplicaFile> read_any(const FoundCheckpoint& found,
                                             const std::filesystem::path& writing) {
    for (const int replica : found.manifest.with_everything()) {
      try {
        return read(found, replica, writing);
      } catch (const CheckpointDamaged&) {
        continue;  // it is not there, or the worker that is to read it reports the damage
      }
    }
    return std::nullopt;
  }

  // Finds out which workers can read parameters and optimizer state. All workers that share a
  // folder read the one file there that has them.
  void share_everything(const std::string& name, const std::filesystem::path& writing,
                        FoundCheckpoint& found) {
    if (found.everything() == nullptr) found.other_with_everything = read_any(found, writing);
    const auto can = team_.gather(name + "/everything", found.everything() != nullptr);
    for (std::size_t rank = 0; rank < can.size(); ++rank) {
      if (can[rank]) found.with_everything.push_back(static_cast<int>(rank));
    }
  }

  // Unassigns the damaged replicas, and returns what is wrong with them.
  static Damage forget_damaged(FoundCheckpoint& found, const std::vector<Damage>& all) {
    Damage found_damage(found.readers.size());
    for (const Damage& damage : all) {
      for (std::size_t replica = 0; replica < damage.size(); ++replica) {
        if (damage[replica].empty()) continue;
        found_damage[replica] = damage[replica];
        found.readers[replica] = -1;
      }
    }
    return found_damage;
  }

  std::optional<Defect> judge(const FoundCheckpoint& found, const Damage& damage) const {
    if (found.manifest.copies_alike() && found.with_everything.empty())
      return without_everything(found, damage);
    const std::vector<int> missing = missing_in(found);
    if (missing.empty()) return std::nullopt;
    const std::string place = "'" + found.folder.string() + "'";
    const std::string which = ranks_text(missing) + " of " + std::to_string(found.readers.size());
    const bool any_left = found.first_replica() < std::ssize(found.readers);
    if (options_.allow_missing && any_left) {
      options_.warn("checkpoint " + place + ": " + which +
                    " cannot be read; the average of the others is used");
      return std::nullopt;
    }
    const auto bad = std::find_if(damage.begin(), damage.end(),
                                  [](const std::string& text) { return !text.empty(); });
    if (bad != damage.end())
      return Defect{.only_missing = false, .others_do = any_left, .text = *bad};
    const std::string file =
        replica_file_name(missing.front()) + (missing.size() > 1 ? ", .." : "");
    return Defect{.only_missing = any_left,
                  .others_do = any_left,
                  .text = "checkpoint " + place + " is not whole: " + which + " (" + file +
                          ") is on no worker"};
  }

  // The replicas that are left have only buffers, which are no model.
  static Defect without_everything(const FoundCheckpoint& found, const Damage& damage) {
    const std::vector<int> replicas = found.manifest.with_everything();
    for (const int replica : replicas) {
      const std::string& text = damage[static_cast<std::size_t>(replica)];
      if (text.empty()) continue;
      return {.text = text + "; the parameters of all workers are in " +
                      file_names(found, replicas) + " alone"};
    }
    return {.only_missing = found.first_replica() < std::ssize(found.readers),
            .text = "checkpoint '" + found.folder.string() +
                    "' cannot be used: " + file_names(found, replicas) +
                    (replicas.size() == 1 ? ", which holds" : ", which hold") +
                    " the parameters of all workers, is on no worker"};
  }

  const Team& team_;
  const CheckpointSearch& options_;
  int number_ = 0;
};

void warn_of(const CheckpointsByRank& by_rank, const std::string& ending,
             const std::function<void(const std::string&)>& warn) {
  std::set<std::string> told;
  for (const std::vector<LocalCheckpoint>& own : by_rank) {
    for (const LocalCheckpoint& local : own) {
      if (!local.error.empty() && told.insert(local.error).second) warn(local.error + ending);
    }
  }
}

const LocalCheckpoint* first_with_error(const CheckpointsByRank& by_rank, bool unreadable) {
  for (const std::vector<LocalCheckpoint>& own : by_rank) {
    for (const LocalCheckpoint& local : own) {
      if (!local.error.empty() && local.unreadable == unreadable) return &local;
    }
  }
  return nullptr;
}

}  // namespace

bool FoundCheckpoint::whole() const { return missing_in(*this).empty(); }

int FoundCheckpoint::first_replica() const {
  const auto there = [](int reader) { return reader >= 0; };
  return static_cast<int>(std::find_if(readers.begin(), readers.end(), there) - readers.begin());
}

const ReplicaFile* FoundCheckpoint::everything() const {
  for (const int replica : manifest.with_everything()) {
    const auto found = own.find(replica);
    if (found != own.end()) return &found->second;
  }
  return other_with_everything ? &*other_with_everything : nullptr;
}

std::optional<FoundCheckpoint> find_newest_checkpoint(const Team& team,
                                                      const std::filesystem::path& checkpoints,
                                                      const CheckpointSearch& search) {
  const CheckpointFolder folder(checkpoints);
  const CheckpointsByRank by_rank =
      share_local_checkpoints(team, local_checkpoints_in(checkpoints));
  warn_of(by_rank, "; it is skipped", search.warn);
  Search searching(team, search);
  std::string incomplete, damaged;
  for (const Candidate& candidate : candidates_in(by_rank)) {
    FoundCheckpoint found;
    const auto defect = searching.open(candidate, folder.path_of(candidate.step),
                                       folder.writing_path_of(candidate.step), found);
    if (!defect) return found;
    search.warn(defect->text + "; it is skipped");
    std::string& kind = defect->only_missing ? incomplete : damaged;
    if (kind.empty())
      kind = defect->text + (defect->only_missing && defect->others_do ? kOffer : "");
  }
  if (!incomplete.empty()) throw SharedError(ExitCode::checkpoint_damaged, incomplete);
  if (const LocalCheckpoint* unreadable = first_with_error(by_rank, true)) {
    throw SharedError(ExitCode::user_error, unreadable->error);
  }
  if (const LocalCheckpoint* bad = first_with_error(by_rank, false);
      bad != nullptr && damaged.empty()) {
    damaged = bad->error;
  }
  if (!damaged.empty() && search.must_find) {
    throw SharedError(ExitCode::checkpoint_damaged, damaged);
  }
  return std::nullopt;
}

namespace {

std::vector<Kept> scores_of(const std::vector<Candidate>& candidates, const BestBy& best,
                            const CheckpointSearch& search) {
  std::vector<Evaluated> evaluated;
  for (const Candidate& each : candidates)
    evaluated.push_back({each.step, each.metrics, each.measure});
  std::vector<Kept> scores = comparable_scores(evaluated, best.metric);
  std::int64_t others = 0;
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (!scores[i].score && find_number(evaluated[i].metrics, best.metric)) ++others;
  if (others > 0)
    search.warn("the best checkpoint is not looked for among " + counted(others, "checkpoint") +
                " whose " + best.metric +
                " was measured with another loss, target or data.eval than the newest one's");
  return scores;
}

}  // namespace

FoundCheckpoint find_best_checkpoint(const Team& team, const std::filesystem::path& checkpoints,
                                     const BestBy& best, const CheckpointSearch& search) {
  const CheckpointFolder folder(checkpoints);
  const CheckpointsByRank by_rank =
      share_local_checkpoints(team, local_checkpoints_in(checkpoints));
  warn_of(by_rank, "; it is skipped", search.warn);
  const std::vector<Candidate> candidates = candidates_in(by_rank);
  const std::vector<Kept> scores = scores_of(candidates, best, search);
  const auto step = best_checkpoint(scores, best.higher_is_better);
  if (!step)
    throw SharedError(ExitCode::user_error, "no checkpoint in '" + checkpoints.string() +
                                                "' has an evaluation by " + best.metric);
  const auto chosen = std::find_if(candidates.begin(), candidates.end(),
                                   [&](const Candidate& each) { return each.step == *step; });
  FoundCheckpoint found;
  const auto defect =
      Search(team, search)
          .open(*chosen, folder.path_of(*step), folder.writing_path_of(*step), found);
  if (!defect) return found;
  throw SharedError(ExitCode::checkpoint_damaged, "the best checkpoint by " + best.metric + ": " +
                                                      defect->text +
                                                      (defect->others_do ? kOffer : ""));
}

FoundCheckpoint open_checkpoint(const Team& team, const std::filesystem::path& folder,
                                const CheckpointSearch& search) {
  const CheckpointsByRank by_rank = share_local_checkpoints(team, local_checkpoint_at(folder));
  const std::vector<Candidate> candidates = candidates_in(by_rank);
  if (candidates.empty()) {
    for (const bool unreadable : {false, true}) {
      const LocalCheckpoint* local = first_with_error(by_rank, unreadable);
      if (local == nullptr) continue;
      throw SharedError(unreadable ? ExitCode::user_error : ExitCode::checkpoint_damaged,
                        local->error);
    }
    std::error_code failed;
    const bool is_file = std::filesystem::is_regular_file(folder, failed);
    throw SharedError(
        ExitCode::user_error,
        "there is no checkpoint '" + folder.string() + "'" +
            (is_file ? ": this is a file, and model.weights takes weights to start from" : "") +
            ". A checkpoint is a folder like runs/NAME/checkpoints/step-00000500, and a run's "
            "folder "
            "stands for its newest one");
  }
  warn_of(by_rank, "", search.warn);  // errors on machines other than the manifest's
  Search searching(team, search);
  FoundCheckpoint found;
  const auto defect = searching.open(candidates.front(), folder, {}, found);
  if (!defect) return found;
  throw SharedError(ExitCode::checkpoint_damaged, defect->text + (defect->others_do ? kOffer : ""));
}

}  // namespace decent
