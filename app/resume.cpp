#include "resume.h"

#include <algorithm>
#include <utility>

#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/train/compatibility.h"
#include "decent/train/folder_sharing.h"
#include "decent/train/metrics_file.h"
#include "decent/train/run_folder.h"

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
    lines.push_back("the checkpoint is of " + std::to_string(manifest.world_size) +
                    " workers, this run has " + std::to_string(workers) +
                    ": all of them start from the average of the replicas and optimizer states");
  }
  for (const std::string& change : changes) lines.push_back("changed since: " + change);
  return lines;
}

// What only rank 0 writes.
void open_run_files(Program& program, const Setup& setup, const RunFolder& folder) {
  if (setup.goes_on) {
    cut_metrics(folder.metrics(), setup.first_step);
  } else {
    std::filesystem::remove(folder.metrics());
  }
  write_file(folder.recipe(), print_recipe(setup.recipe));
  program.log->open_file(folder.log());
}

// Later ones belong to a past that this run leaves: with them in place `auto` would go back there.
std::vector<std::string> set_later_aside(const CheckpointFolder& checkpoints, std::int64_t step,
                                         bool afresh) {
  std::vector<std::string> lines;
  for (std::int64_t later : checkpoints.steps()) {
    if (later < step || (later == step && !afresh)) continue;
    lines.push_back("checkpoint '" + checkpoints.path_of(later).string() +
                    "' is set aside: it is now '" + checkpoints.set_aside(later).string() + "'");
  }
  return lines;
}

}  // namespace

std::optional<FoundCheckpoint> find_checkpoint(Program& program, const Setup& setup,
                                               const std::string& choice) {
  program.world->control().report(Operation::loading);
  const CheckpointSearch search{.allow_missing = setup.recipe.checkpoint.allow_missing,
                                .warn = [&](const std::string& text) { program.log->warn(text); }};
  if (choice != "auto") {
    return open_checkpoint(*program.world, program.launch.rank, without_slash(choice), search);
  }
  return find_newest_checkpoint(*program.world, program.launch.rank,
                                RunFolder(setup.recipe.output).checkpoints(), search);
}

std::optional<StartingPoint> find_start(Program& program, Setup& setup) {
  std::optional<FoundCheckpoint> found = find_checkpoint(program, setup, *program.flags.resume);
  if (!found) return std::nullopt;
  const int workers = program.launch.world_size;
  std::vector<std::string> changes;
  agree(*program.world, "resume", [&] {
    changes = check_can_resume(found->manifest, facts_of(setup), workers);
    plan_to_go_on(setup, program.launch, found->manifest.step,
                  {found->manifest.epoch, found->manifest.consumed});
  });
  std::vector<std::string> lines = lines_on(*found, setup, workers, changes);
  return StartingPoint{std::move(*found), std::move(lines)};
}

bool is_complete(Program& program, const Setup& setup, const std::optional<StartingPoint>& start) {
  Outcome own;
  const RunFolder folder(setup.recipe.output);
  if (program.main_worker()) {
    const auto step = completed_step(folder.metrics());
    const std::int64_t from = start ? start->checkpoint.manifest.step : step.value_or(0);
    const bool complete = step && *step >= setup.total_steps && from >= setup.total_steps &&
                          std::filesystem::exists(folder.model());
    if (complete) own.message = std::to_string(*step);
  }
  const std::string step = program.world->share("complete", own).front().message;
  if (step.empty()) return false;
  program.log->info("the run in '" + folder.path().string() + "' is complete (step " + step +
                    "): nothing is left to do");
  return true;
}

bool open_output(Program& program, const Setup& setup) {
  World& world = *program.world;
  const RunFolder folder(setup.recipe.output);
  const std::vector<int> sharing = workers_sharing(world, program.launch.rank, folder.path());
  const bool leads = sharing.front() == program.launch.rank;
  std::vector<std::string> lines;
  agree(world, "output", [&] {
    if (program.main_worker()) open_run_files(program, setup, folder);
    if (!leads) return;
    const CheckpointFolder checkpoints(folder.checkpoints());
    checkpoints.clear_leftovers();
    if (program.flags.resume) {
      lines = set_later_aside(checkpoints, setup.first_step, !setup.goes_on);
    }
  });
  for (const std::string& line : lines) program.log->warn(line);
  return leads;
}

}  // namespace decent
