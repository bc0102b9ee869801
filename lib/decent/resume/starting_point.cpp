#include "decent/resume/starting_point.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/comm/gather.h"
#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/text.h"

namespace decent {
namespace {

// "step-00000500/" names the same folder.
std::filesystem::path without_slash(const std::string& text) {
  std::filesystem::path path(text);
  return path.has_filename() ? path : path.parent_path();
}

// Only rank 0's folder has the files from which to tell the run.
std::string agree_on_run(const ResumeContext& context, const FoundCheckpoint& found,
                         const std::string& fresh) {
  return context.team
      .agree("run",
             [&] {
               if (!context.team.speaks()) return fresh;
               return resumed_run_id(found, RunFolder(context.recipe.output),
                                     print_recipe(context.recipe), fresh);
             })
      .front();
}

BestBy best_by(const ResumeContext& context) {
  const std::optional<std::string>& metric = context.recipe.checkpoint.keep_best;
  if (metric) return {.metric = *metric, .higher_is_better = context.higher_is_better};
  throw SharedError(
      ExitCode::user_error,
      "there is no best checkpoint: checkpoint.keep_best, the metric that decides, is "
      "null.\n--set checkpoint.keep_best=loss chooses the one with the lowest loss");
}

// The ids of the run in a folder; none if it has no checkpoints, or only those of older versions.
std::set<std::string> run_ids_in(const CheckpointFolder& checkpoints) {
  std::set<std::string> ids;
  checkpoints.visit_manifests(
      [&](std::int64_t, const Manifest& manifest) { ids.insert(manifest.run); });
  ids.erase("");
  return ids;
}

// Whether the checkpoint is one of the output folder's, on this machine or on another one.
bool lies_in(const FoundCheckpoint& found, const RunFolder& folder) {
  std::error_code failed;
  const auto above = std::filesystem::absolute(found.folder).parent_path();
  const auto own = std::filesystem::absolute(folder.checkpoints());
  return above == own || std::filesystem::equivalent(above, own, failed);
}

// Without ids, the folder tells, or the recipe, which contains the path of the output folder. The
// folder of rank 0 may have lost checkpoints that other machines still have.
bool looks_like_run(const FoundCheckpoint& found, const RunFolder& folder) {
  if (lies_in(found, folder)) return true;
  std::error_code failed;
  return std::filesystem::exists(folder.recipe(), failed) &&
         read_text(folder.recipe()) == found.manifest.recipe;
}

// Whether the folder's run began with another run's checkpoint, too, and ended without saving.
bool began_alike(const RunFolder& folder, const std::string& recipe) {
  std::error_code failed;
  const auto checkpoints = std::filesystem::directory_iterator(folder.checkpoints(), failed);
  if (checkpoints != std::filesystem::directory_iterator()) return false;
  return std::filesystem::exists(folder.recipe(), failed) && read_text(folder.recipe()) == recipe;
}

}  // namespace

bool is_of_run(const FoundCheckpoint& found, const RunFolder& folder) {
  const std::set<std::string> ids = run_ids_in(CheckpointFolder(folder.checkpoints()));
  const bool can_tell = !ids.empty() && !found.manifest.run.empty();
  return can_tell ? ids.contains(found.manifest.run) : looks_like_run(found, folder);
}

std::string resumed_run_id(const FoundCheckpoint& found, const RunFolder& folder,
                           const std::string& recipe, const std::string& fresh) {
  // A machine that has nothing of the run may speak for it.
  if (!lies_in(found, folder) && (!folder.holds_run() || began_alike(folder, recipe))) return fresh;
  if (!is_of_run(found, folder)) {
    throw UserError("checkpoint '" + found.folder.string() +
                    "' is of another run than the one in output folder '" + folder.path().string() +
                    "'.\n--resume auto continues the one in the folder; to go on from this "
                    "checkpoint choose another folder with --set output=DIR.");
  }
  return found.manifest.run.empty() ? fresh : found.manifest.run;
}

std::optional<FoundCheckpoint> find_checkpoint(const ResumeContext& context,
                                               const std::string& choice, bool must_find) {
  const Team& team = context.team;
  team.control().report(Operation::loading);
  const CheckpointSearch search{.allow_missing = context.recipe.checkpoint.allow_missing,
                                .must_find = must_find,
                                .warn = [&](const std::string& text) { context.log.warn(text); }};
  const std::filesystem::path all = RunFolder(context.recipe.output).checkpoints();
  if (choice == "auto") return find_newest_checkpoint(team, all, search);
  if (choice == "best") return find_best_checkpoint(team, all, best_by(context), search);
  return open_checkpoint(team, without_slash(choice), search);
}

std::optional<StartingPoint> find_start(const ResumeContext& context, const std::string& choice,
                                        const std::string& fresh_id, const ResumingRun& run) {
  std::optional<FoundCheckpoint> found =
      find_checkpoint(context, choice == "best" ? "./best" : choice, false);  // "best": a folder
  if (!found) return std::nullopt;
  const std::string id = agree_on_run(context, *found, fresh_id);
  StartingPoint start{.checkpoint = std::move(*found), .run_id = id};
  context.team.agree("resume",
                     [&] { start.changes = check_can_resume(start.checkpoint.manifest, run); });
  return start;
}

Beginning beginning_of(const FoundCheckpoint& checkpoint, const ResumingRun& now) {
  const Manifest& manifest = checkpoint.manifest;
  const std::vector<int> lost = manifest.lost();
  if (!lost.empty()) {
    std::vector<std::string> ranks;
    for (const int rank : lost) ranks.push_back(std::to_string(rank));
    return {BeginWith::average_of_replicas,
            "the checkpoint is of " + counted(manifest.world_size, "worker") + " without " +
                (lost.size() == 1 ? "worker " : "workers ") + join(ranks) +
                ", lost in its last step; this run has " + std::to_string(now.workers) +
                ": all of them start from the average of the replicas and optimizer states"};
  }
  if (manifest.world_size != now.workers) {
    return {BeginWith::average_of_replicas,
            "the checkpoint is of " + counted(manifest.world_size, "worker") + ", this run has " +
                std::to_string(now.workers) +
                ": all of them start from the average of the replicas and optimizer states"};
  }
  // The search has already told the user which replicas are missing.
  if (!checkpoint.whole()) return {BeginWith::average_of_replicas};
  if (now.workers > 1 && now.copies_alike && !manifest.copies_alike()) {
    return {BeginWith::average_of_replicas,
            "all workers start from the average of the replicas and optimizer states: from now on "
            "their copies are alike"};
  }
  if (!now.needs_near_copies) return {};
  const std::vector<std::string> changes = exchange_changes(manifest, now);
  if (changes.empty()) return {};
  return {BeginWith::average_of_weights,
          "all workers start from the average of their weights: the exchange works only between "
          "weights that are near, and these have changed: " +
              join(changes)};
}

// The clocks of two machines may differ by more than a short pause.
std::optional<ResumeMetrics> change_of_workers(const Manifest& manifest, int workers, double now) {
  ResumeMetrics change{.step = manifest.step,
                       .workers = workers,
                       .before = manifest.world_size,
                       .lost = manifest.lost()};
  if (change.lost.empty() && change.before == workers) return std::nullopt;
  if (manifest.lost_at) change.pause_s = std::max(0.0, now - *manifest.lost_at);
  return change;
}

std::vector<std::string> resume_lines(const StartingPoint& start, std::int64_t total_steps) {
  std::vector<std::string> lines = {
      "resuming from '" + start.checkpoint.folder.string() + "', after step " +
      std::to_string(start.checkpoint.manifest.step) + " of " + std::to_string(total_steps)};
  for (const std::string& change : start.changes) lines.push_back("changed since: " + change);
  if (!start.beginning.why.empty()) lines.push_back(start.beginning.why);
  if (!start.topology.empty()) lines.push_back(start.topology);
  return lines;
}

}  // namespace decent
