#include "decent/resume/starting_point.h"

#include <filesystem>
#include <utility>

#include "decent/comm/gather.h"
#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/resume/run_identity.h"

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

}  // namespace

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

std::vector<std::string> resume_lines(const StartingPoint& start, std::int64_t total_steps) {
  std::vector<std::string> lines = {
      "resuming from '" + start.checkpoint.folder.string() + "', after step " +
      std::to_string(start.checkpoint.manifest.step) + " of " + std::to_string(total_steps)};
  for (const std::string& change : start.changes) lines.push_back("changed since: " + change);
  if (!start.beginning.why.empty()) lines.push_back(start.beginning.why);
  return lines;
}

}  // namespace decent
