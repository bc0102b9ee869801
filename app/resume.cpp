#include "resume.h"

#include <algorithm>
#include <set>
#include <system_error>
#include <utility>

#include "decent/comm/gather.h"
#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/text.h"
#include "decent/report/metrics_file.h"
#include "decent/report/run_folder.h"
#include "decent/resume/compatibility.h"
#include "decent/resume/folder_sharing.h"
#include "decent/resume/pruning.h"
#include "decent/task/metrics.h"

namespace decent {
namespace {

// "step-00000500/" names the same folder.
std::filesystem::path without_slash(const std::string& text) {
  std::filesystem::path path(text);
  return path.has_filename() ? path : path.parent_path();
}

std::vector<std::string> lines_on(const FoundCheckpoint& found, const Setup& setup, int workers,
                                  const std::vector<std::string>& changes) {
  const Manifest& manifest = found.manifest;
  std::vector<std::string> lines;
  lines.push_back("resuming from '" + found.folder.string() + "', after step " +
                  std::to_string(manifest.step) + " of " + std::to_string(setup.total_steps));
  if (manifest.world_size != workers) {
    lines.push_back("the checkpoint is of " + counted(manifest.world_size, "worker") +
                    ", this run has " + std::to_string(workers) +
                    ": all of them start from the average of the replicas and optimizer states");
  }
  for (const std::string& change : changes) lines.push_back("changed since: " + change);
  return lines;
}

// After a crash nobody misses the lines that come again. A user who goes back may.
bool leaves_something_behind(const Program& program, const Setup& setup, const RunFolder& folder) {
  if (!setup.goes_on) return std::filesystem::exists(folder.metrics());
  return program.flags.resume != "auto" && last_step_in(folder.metrics()) > setup.first_step;
}

// What only rank 0 writes.
void open_run_files(Program& program, const Setup& setup, const RunFolder& folder) {
  if (leaves_something_behind(program, setup, folder)) {
    program.log->info("the metrics so far, and models that were exported, are kept in '" +
                      folder.set_aside().string() + "'");
  }
  // All lines of a run that starts afresh are of step 0 or later.
  cut_metrics(folder.metrics(), setup.goes_on ? setup.first_step : -1);
  write_file(folder.recipe(), print_recipe(setup.recipe));
  program.log->open_file(folder.log());
}

// The ids of the run in a folder; none where it has no checkpoint, or an older program wrote them.
std::set<std::string> run_ids_in(const CheckpointFolder& checkpoints) {
  std::set<std::string> ids;
  checkpoints.visit_manifests(
      [&](std::int64_t, const Manifest& manifest) { ids.insert(manifest.run); });
  ids.erase("");
  return ids;
}

// Where there are no ids the folder and the recipe, which has the path of the output folder, tell.
// The folder of rank 0 may have lost the checkpoints that other machines have.
bool looks_like_run(const FoundCheckpoint& found, const RunFolder& folder) {
  std::error_code failed;
  const auto above = std::filesystem::absolute(found.folder).parent_path();
  const auto own = std::filesystem::absolute(folder.checkpoints());
  if (above == own || std::filesystem::equivalent(above, own, failed)) return true;
  return std::filesystem::exists(folder.recipe(), failed) &&
         read_text(folder.recipe()) == found.manifest.recipe;
}

// The id of the run that goes on from a checkpoint: of the same run, or of a new one that begins
// with it in a folder of its own.
std::string run_that_goes_on(const Program& program, const FoundCheckpoint& found,
                             const RunFolder& folder) {
  if (!folder.holds_run()) return program.session;
  if (!is_of_run(found, folder)) {
    throw UserError("checkpoint '" + found.folder.string() +
                    "' is of another run than the one in output folder '" + folder.path().string() +
                    "'.\n--resume auto continues the one in the folder; to go on from this "
                    "checkpoint choose another folder with --set output=DIR.");
  }
  return found.manifest.run.empty() ? program.session : found.manifest.run;
}

// Rank 0's folder has the files that tell.
void choose_run(Program& program, Setup& setup, const std::optional<FoundCheckpoint>& found) {
  const std::vector<std::string> ids = program.world->agree("run", [&] {
    if (!found || !program.main_worker()) return program.session;
    return run_that_goes_on(program, *found, RunFolder(setup.recipe.output));
  });
  setup.run_id = ids.front();
}

// Whether the run goes on from the checkpoint that stands in the output folder for its step.
bool holds_start(const CheckpointFolder& checkpoints, const std::optional<StartingPoint>& start) {
  if (!start) return false;
  const FoundCheckpoint& found = start->checkpoint;
  std::error_code failed;
  return std::filesystem::equivalent(found.folder, checkpoints.path_of(found.manifest.step),
                                     failed);
}

// The other machine of a run was killed after this one was ready to give the checkpoint its name,
// and had done so itself.
void finish_start(const CheckpointFolder& checkpoints, const std::optional<StartingPoint>& start) {
  if (!start) return;
  const FoundCheckpoint& found = start->checkpoint;
  const std::int64_t step = found.manifest.step;
  const bool here = found.folder == checkpoints.path_of(step);
  if (!here || std::filesystem::exists(found.folder)) return;
  if (std::filesystem::exists(checkpoints.writing_path_of(step))) {
    checkpoints.publish(found.manifest);
  }
}

// Later ones belong to a past that this run leaves: with them in place `auto` would go back there.
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
  const std::filesystem::path files[] = {folder.recipe(), folder.metrics(), folder.model(),
                                         folder.weights()};
  return std::any_of(std::begin(files), std::end(files), [&](const auto& file) {
    return is_temporary_of(name, file.filename().string());
  });
}

// What is left where workers_sharing() is killed, or the writing of one of the run's files.
void remove_leftovers(const RunFolder& folder) {
  std::vector<std::filesystem::path> leftovers;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    if (is_leftover(folder, entry.path().filename().string())) leftovers.push_back(entry.path());
  }
  std::error_code ignored;
  for (const std::filesystem::path& each : leftovers) std::filesystem::remove(each, ignored);
}

}  // namespace

bool is_of_run(const FoundCheckpoint& found, const RunFolder& folder) {
  const std::set<std::string> ids = run_ids_in(CheckpointFolder(folder.checkpoints()));
  const bool can_tell = !ids.empty() && !found.manifest.run.empty();
  return can_tell ? ids.contains(found.manifest.run) : looks_like_run(found, folder);
}

std::optional<FoundCheckpoint> find_checkpoint(Program& program, const Setup& setup,
                                               const std::string& choice, bool must_find) {
  program.world->control().report(Operation::loading);
  const CheckpointSearch search{.allow_missing = setup.recipe.checkpoint.allow_missing,
                                .must_find = must_find,
                                .warn = [&](const std::string& text) { program.log->warn(text); }};
  if (choice != "auto") {
    return open_checkpoint(*program.world, program.launch.rank, without_slash(choice), search);
  }
  return find_newest_checkpoint(*program.world, program.launch.rank,
                                RunFolder(setup.recipe.output).checkpoints(), search);
}

std::optional<StartingPoint> find_start(Program& program, Setup& setup) {
  std::optional<FoundCheckpoint> found =
      find_checkpoint(program, setup, *program.flags.resume, false);
  choose_run(program, setup, found);
  if (!found) return std::nullopt;
  const int workers = program.launch.world_size;
  std::vector<std::string> changes;
  program.world->agree("resume", [&] {
    changes = check_can_resume(found->manifest, facts_of(setup), workers);
    plan_to_go_on(setup, program.world->membership(), program.launch.rank, found->manifest.step,
                  {found->manifest.epoch, found->manifest.consumed});
  });
  std::vector<std::string> lines = lines_on(*found, setup, workers, changes);
  return StartingPoint{std::move(*found), std::move(lines)};
}

bool is_complete(Program& program, const Setup& setup, const std::optional<StartingPoint>& start) {
  constexpr std::int64_t kNotComplete = -1;
  std::int64_t complete = kNotComplete;  // else its step
  const RunFolder folder(setup.recipe.output);
  if (program.main_worker()) {
    const auto step = completed_step(folder.metrics());
    const std::int64_t from = start ? start->checkpoint.manifest.step : step.value_or(0);
    const bool is = step && *step >= setup.total_steps && from >= setup.total_steps &&
                    std::filesystem::exists(folder.model());
    if (is) complete = *step;
  }
  const std::int64_t step = program.world->gather("complete", complete).front();
  if (step == kNotComplete) return false;
  program.log->info("the run in '" + folder.path().string() + "' is complete (step " +
                    std::to_string(step) + "): nothing is left to do");
  return true;
}

void tidy_checkpoints(Program& program, const Setup& setup) {
  const RunFolder folder(setup.recipe.output);
  const CheckpointFolder checkpoints(folder.checkpoints());
  const auto sharing = workers_sharing(*program.world, program.launch.rank, folder.path());
  program.world->agree("tidied", [&] {
    if (sharing.front() != program.launch.rank) return;
    remove_leftovers(folder);
    checkpoints.clear_leftovers();
    prune_checkpoints(checkpoints, setup.recipe.checkpoint, keeps_highest(setup.recipe.checkpoint));
  });
}

Output open_output(Program& program, const Setup& setup,
                   const std::optional<StartingPoint>& start) {
  World& world = *program.world;
  const RunFolder folder(setup.recipe.output);
  const CheckpointFolder checkpoints(folder.checkpoints());
  const std::vector<int> sharing = workers_sharing(world, program.launch.rank, folder.path());
  Output output{.leads = sharing.front() == program.launch.rank};
  // All later checkpoints go before any line of the metrics does: whenever this is cut short, what
  // is left is one run up to one step.
  world.agree("checkpoints", [&] {
    if (!output.leads) return;
    remove_leftovers(folder);
    finish_start(checkpoints, start);
    checkpoints.clear_leftovers();
    if (!program.flags.resume) return;
    for (const std::string& line :
         set_later_aside(checkpoints, setup.first_step, holds_start(checkpoints, start))) {
      program.log->warn(line);
    }
  });
  world.agree("output", [&] {
    if (program.main_worker()) open_run_files(program, setup, folder);
  });
  const auto here = world.gather("has start", holds_start(checkpoints, start));
  output.has_start = std::all_of(here.begin(), here.end(), [](bool has) { return has; });
  return output;
}

}  // namespace decent
