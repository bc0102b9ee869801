#include "decent/resume/run_output.h"

#include <algorithm>
#include <system_error>

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/comm/gather.h"
#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/host.h"
#include "decent/resume/checkpointer.h"
#include "decent/resume/history.h"
#include "decent/resume/starting_point.h"
#include "decent/runfolder/metrics_file.h"
#include "decent/runfolder/run_folder.h"

namespace decent {
namespace {

std::int64_t step_of(const FoundCheckpoint* start) { return start ? start->manifest.step : 0; }

bool is_pending(const FoundCheckpoint* start) {
  return start && start->manifest.evaluation_pending;
}

// After a crash nobody misses the removed lines: they are written again. A user who goes back may.
bool leaves_something_behind(const FoundCheckpoint* start, RunBegins begins,
                             const RunFolder& folder) {
  if (!start) return std::filesystem::exists(folder.metrics());
  return begins == RunBegins::going_back && last_step_in(folder.metrics()) > step_of(start);
}

// Removes what the history has of later steps.
void cut_history(const ResumeContext& context, const FoundCheckpoint* start, RunBegins begins,
                 const RunFolder& folder) {
  if (leaves_something_behind(start, begins, folder)) {
    context.log.info("the metrics so far, and models that were exported, are kept in '" +
                     folder.set_aside().string() + "'");
  }
  // All lines of a run that starts afresh are of step 0 or later.
  cut_metrics(folder.metrics(), {.step = start ? step_of(start) : -1,
                                 .log_every = context.recipe.log.every_steps,
                                 .evaluation_pending = is_pending(start)});
}

// Whether the folder has checkpoints of the run that goes on, and so its history up to one of them.
bool may_have_history(const FoundCheckpoint* start, const RunFolder& folder) {
  return start && !CheckpointFolder(folder.checkpoints()).steps().empty() &&
         is_of_run(*start, folder);
}

// Whether the run resumes from a checkpoint in the output folder.
bool holds_start(const CheckpointFolder& checkpoints, const FoundCheckpoint* start) {
  if (!start) return false;
  std::error_code failed;
  return std::filesystem::equivalent(start->folder, checkpoints.path_of(start->manifest.step),
                                     failed);
}

// Notes the evaluation if another machine did so and this one was killed before.
void finish_evaluation(const CheckpointFolder& checkpoints, const Manifest& manifest) {
  if (manifest.evaluation_pending) return;
  checkpoints.visit_manifests([&](std::int64_t step, const Manifest& own) {
    if (step == manifest.step && own.evaluation_pending)
      checkpoints.note_evaluation(step, manifest.metrics, manifest.evaluations);
  });
}

// Completes the checkpoint if another machine has published it and this one was killed just before
// it did the same.
void finish_start(const CheckpointFolder& checkpoints, const FoundCheckpoint* start) {
  if (!start) return;
  const std::int64_t step = start->manifest.step;
  const bool here = start->folder == checkpoints.path_of(step);
  if (!here) return;
  if (std::filesystem::exists(start->folder)) {
    finish_evaluation(checkpoints, start->manifest);
  } else if (std::filesystem::exists(checkpoints.writing_path_of(step))) {
    checkpoints.publish(start->manifest);
  }
}

// Later checkpoints belong to a past that this run leaves: `--resume auto` would return to them.
std::vector<std::string> set_later_aside(const CheckpointFolder& checkpoints, std::int64_t step,
                                         bool keeps_step) {
  std::vector<std::string> lines;
  for (std::int64_t later : checkpoints.steps()) {
    if (later < step || (later == step && keeps_step)) continue;
    lines.push_back("checkpoint '" + checkpoints.path_of(later).string() +
                    "' is set aside: it is now '" + checkpoints.set_aside(later).string() + "'");
  }
  return lines;
}

bool is_leftover(const RunFolder& folder, const std::string& name) {
  if (name.starts_with(kMarkerPrefix)) return true;
  std::vector<std::filesystem::path> files = folder.models();
  files.insert(files.end(), {folder.recipe(), folder.metrics(), folder.data(), folder.run(),
                             folder.report(), folder.class_scores(), folder.confusion()});
  return std::any_of(files.begin(), files.end(), [&](const auto& file) {
    return is_temporary_of(name, file.filename().string());
  });
}

// Whether the planned end is reached. For a run that resumes after an early stop, the evaluations
// in its checkpoint decide whether it still ends there.
bool reaches(const EndMetrics& end, const FoundCheckpoint* start, std::int64_t planned,
             bool same_stop) {
  if (is_pending(start)) return false;
  if (start) return end.step >= planned && step_of(start) >= planned;
  return end.step >= planned || (end.stopped_early && same_stop);
}

// Removes what is left if workers_sharing() or the writing of one of the run's files is killed.
void remove_leftovers(const RunFolder& folder) {
  std::vector<std::filesystem::path> leftovers;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (is_leftover(folder, entry.path().filename().string())) leftovers.push_back(entry.path());
  }
  std::error_code ignored;
  for (const std::filesystem::path& each : leftovers) std::filesystem::remove(each, ignored);
}

}  // namespace

std::vector<int> workers_sharing(const Team& team, const std::filesystem::path& folder) {
  // Nobody has asked for this name before, so no network file system has cached that it does not
  // exist.
  const std::string own = kMarkerPrefix + std::to_string(team.rank()) + "-" + random_name();
  const auto markers = team.attempt("folder", [&] {
    create_folders(folder);
    write_file(folder / own, "");
    return own;
  });
  std::error_code failed;
  std::vector<int> sharing;
  for (std::size_t other = 0; other < markers.size(); ++other) {
    const auto& marker = markers[other].value;
    const bool self = static_cast<int>(other) == team.rank();
    if (self || (marker && std::filesystem::exists(folder / *marker, failed))) {
      sharing.push_back(static_cast<int>(other));
    }
  }
  team.agree("folder/seen", [] {});  // everyone has looked: the markers can go
  std::filesystem::remove(folder / own, failed);
  throw_if_failed(outcomes_of(markers));
  return sharing;
}

RunOutput open_output(const ResumeContext& context, const FoundCheckpoint* start,
                      RunBegins begins) {
  const Team& team = context.team;
  const RunFolder folder(context.recipe.output);
  const CheckpointFolder checkpoints(folder.checkpoints());
  const std::vector<int> sharing = workers_sharing(team, folder.path());
  const bool leads = sharing.front() == team.rank();
  RunOutput output{.leaders = FolderLeaders(team.gather("leaders", sharing.front()))};
  // Later checkpoints are set aside before any line of the metrics is removed. So the folder holds
  // one run up to one step whenever this is cut short.
  team.agree("checkpoints", [&] {
    if (!leads) return;
    remove_leftovers(folder);
    finish_start(checkpoints, start);
    checkpoints.clear_leftovers();
    if (begins == RunBegins::afresh) return;
    const bool keeps = holds_start(checkpoints, start);
    for (const auto& line : set_later_aside(checkpoints, step_of(start), keeps)) {
      context.log.warn(line);
    }
    // A run that was killed after its last checkpoint saves no more, which would prune.
    prune_checkpoints(checkpoints, context.recipe.checkpoint, context.higher_is_better);
  });
  team.agree("output", [&] {
    if (leads) cut_history(context, start, begins, folder);
    if (!team.speaks()) return;
    write_file(folder.recipe(), print_recipe(context.recipe));
    context.log.open_file(folder.log());
  });
  share_history(team, output.leaders, folder, may_have_history(start, folder));
  const auto here = team.gather("has start", holds_start(checkpoints, start));
  output.holds_checkpoint = std::all_of(here.begin(), here.end(), [](bool has) { return has; });
  return output;
}

bool is_complete(const ResumeContext& context, const FoundCheckpoint* start, std::int64_t planned,
                 bool same_stop) {
  constexpr std::int64_t kNotComplete = -1;
  std::int64_t complete = kNotComplete;  // or the step at which the run is complete
  bool early = false;                    // on rank 0, which prints
  const RunFolder folder(context.recipe.output);
  if (context.team.speaks()) {
    const auto end = completion_in(folder.metrics());
    const bool is = end && reaches(*end, start, planned, same_stop);
    if (is && std::filesystem::exists(folder.model())) complete = end->step;
    early = is && end->stopped_early;
  }
  const std::int64_t step = context.team.gather("complete", complete).front();
  if (step == kNotComplete) return false;
  context.log.info("the run in '" + folder.path().string() + "' is complete (step " +
                   std::to_string(step) + "): nothing is left to do" +
                   (early ? ". train.stop ended it early; with a larger patience, or "
                            "train.stop=null, --resume goes on with it"
                          : ""));
  return true;
}

void tidy_checkpoints(const ResumeContext& context) {
  const RunFolder folder(context.recipe.output);
  const CheckpointFolder checkpoints(folder.checkpoints());
  const auto sharing = workers_sharing(context.team, folder.path());
  context.team.agree("tidied", [&] {
    if (sharing.front() != context.team.rank()) return;
    remove_leftovers(folder);
    checkpoints.clear_leftovers();
    prune_checkpoints(checkpoints, context.recipe.checkpoint, context.higher_is_better);
  });
}

}  // namespace decent
