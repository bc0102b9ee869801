#include "program.h"

#include <sys/socket.h>

#include <functional>

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/core/error.h"
#include "decent/runfolder/run_folder.h"
#include "decent/task/device.h"
#include "decent/task/learned_in.h"
#include "decent/task/metrics.h"
#include "decent/task/statistics.h"
#include "decent/train/announcements.h"
#include "decent/train/fingerprint.h"
#include "decent/train/methods.h"
#include "decent/train/output_files.h"
#include "decent/train/recipe_names.h"
#include "decent/train/run_recipe.h"
#include "decent/train/updates.h"

namespace decent {
namespace {

CommandFiles files_of(const Program& program, Purpose purpose) {
  const Flags& flags = program.flags;
  const std::string checkpoint = flags.resume.value_or(flags.checkpoint);
  CommandFiles files{.config = flags.config,
                     .trains = purpose == Purpose::training,
                     .evaluates = flags.eval_only,
                     .predict_file = flags.predict_file,
                     .export_file = flags.export_file,
                     .checkpoint = {},
                     .rank = program.launch.rank};
  if (program.flags.resume ? checkpoint != "auto" : names_folder(checkpoint))
    files.checkpoint = checkpoint;
  return files;
}

// Whether the command resumes or reads a run.
bool is_of_a_run(const Flags& flags, const CommandFiles& files) {
  return files.trains ? flags.resume.has_value() : flags.checkpoint != "none";
}

// What the run has learned about its training data. If the command reads only a model, the data of
// the run that made the model. A run that is resumed before its first checkpoint begins again.
std::optional<LearnedData> known_data(const Program& program, const CommandFiles& files) {
  const Recipe& recipe = program.recipe.get();
  if (!is_of_a_run(program.flags, files))
    return files.trains ? std::nullopt : learned_in_model(recipe.model);
  std::filesystem::path folder = recipe.output;
  if (files.checkpoint) {
    if (auto known = learned_in_checkpoint(*files.checkpoint)) return known;
    folder = run_of_checkpoint(*files.checkpoint);
  } else if (files.trains && CheckpointFolder(RunFolder(folder).checkpoints()).steps().empty()) {
    return std::nullopt;
  }
  return learned_in(RunFolder(folder));
}

// The recipe with what was measured of the training data earlier, so that it is not measured again.
Recipe recipe_of(const Program& program, const CommandFiles& files,
                 const std::optional<LearnedData>& known) {
  Recipe recipe = program.recipe.get();
  if (known) recipe = with_statistics_of(known->transforms, std::move(recipe));
  if (!is_of_a_run(program.flags, files)) return recipe;
  return with_kept_statistics(std::move(recipe), files.checkpoint);
}

// Called before a device is chosen. An error in the recipe is reported later, by all workers.
void compare_gpus(Program& program, Purpose purpose) {
  const Recipe* recipe = program.recipe.get_if();
  program.world->compare_gpus(purpose != Purpose::model && recipe != nullptr &&
                              recipe->model.device != DeviceName::cpu);
  program.launch = program.world->launch();
}

// `prepare` does what the recipe asks for and returns the model, whose own files are inputs that
// must not be written over either.
void agree_on_setup(Program& program, Purpose purpose,
                    const std::function<const Model&(const Recipe&, const LearnedData*)>& prepare) {
  compare_gpus(program, purpose);
  use_plain_executor();
  program.world->agree("setup", [&] {
    const CommandFiles files = files_of(program, purpose);
    check_outputs(files, program.recipe.get());
    const std::optional<LearnedData> known = known_data(program, files);
    const Recipe recipe = recipe_of(program, files, known);
    check_outputs(files, recipe, &prepare(recipe, known ? &*known : nullptr));
  });
}

ResumingRun resuming_run(const Run& run, int workers) {
  const ParallelRecipe& parallel = run.task.recipe.parallel;
  return {.facts = facts_of(run),
          .workers = workers,
          .names = recipe_names(),
          .copies_alike = parallel_method(parallel.method).copies_alike,
          .needs_near_copies = needs_near_copies(parallel)};
}

}  // namespace

void tell_supervisor(const Launch& launch, char what) {
  if (launch.supervisor < 0) return;
  // If the supervisor has ended, another part of the program notices.
  [[maybe_unused]] const auto sent = ::send(launch.supervisor, &what, 1, MSG_NOSIGNAL);
}

Outcome outcome_of(const std::exception& error, bool verbose) {
  if (const std::optional<Outcome> trouble = device_trouble(error)) return *trouble;
  const std::string text = error.what();
  if (verbose) return {ExitCode::bug, text};
  // LibTorch's errors have a C++ stack trace from the second line on.
  return {ExitCode::bug,
          "this is a bug in decent-train, please report it: " + text.substr(0, text.find('\n'))};
}

// First one worker per machine takes the lock. Then the others do, if they see a different folder:
// a worker that sees the same folder finds its own session in the lock.
void lock_output(Program& program, const std::filesystem::path& folder, bool for_new_run) {
  World& world = *program.world;
  const auto take = [&] {
    program.lock = std::make_unique<OutputLock>(folder);
    program.lock->take(program.session);
  };
  world.agree("lock", [&] {
    if (program.launch.local_rank == 0) take();
  });
  world.agree("lock of others", [&] {
    if (!program.lock) take();
    // Another run may have begun and ended in the folder since the first check.
    if (for_new_run) RunFolder(folder).check_free();
  });
  program.locked = program.lock.get();
  if (program.lock->supported()) return;
  program.log->warn("the file system of output folder '" + folder.string() +
                    "' has no locks: nothing keeps a second run out of it");
}

Team connect(World& world, Task& task) {
  world.control().set_timeout(std::chrono::duration<double>(task.recipe.parallel.timeout_s));
  std::shared_ptr<Communicator> communicator;
  world.agree("connect", [&] { communicator = world.communicator(task.device); });
  return Team(world, std::move(communicator));
}

Run prepare_run_together(Program& program) {
  std::optional<Run> run;
  agree_on_setup(program, Purpose::training,
                 [&](const Recipe& recipe, const LearnedData* known) -> const Model& {
                   if (!program.flags.dry_run) {
                     check_not_held(recipe.output);
                     if (!program.flags.resume) RunFolder(recipe.output).check_free();
                   }
                   run = prepare_run(recipe, program.launch, program.world->member(), known,
                                     /*may_resume=*/program.flags.resume.has_value());
                   return *run->task.model;
                 });
  compare_workers(*program.world, run->task, run->plan.topology);
  return std::move(*run);
}

TriedTask prepare_task_together(Program& program, Purpose purpose) {
  std::optional<TriedTask> tried;
  agree_on_setup(program, purpose,
                 [&](const Recipe& recipe, const LearnedData* known) -> const Model& {
                   Task task = open_task(recipe, program.launch, purpose, known);
                   Trial trial = try_task(task, program.world->member(), {});
                   return *tried.emplace(std::move(task), std::move(trial)).task.model;
                 });
  compare_workers(*program.world, tried->task, {});
  return std::move(*tried);
}

ResumeContext resume_context(Program& program, const Team& team, const Task& task) {
  return {.team = team,
          .recipe = task.recipe,
          .log = *program.log,
          .higher_is_better = keeps_highest(task.recipe.checkpoint)};
}

std::optional<StartingPoint> find_start(Program& program, const Team& team, Run& run) {
  std::optional<StartingPoint> start =
      find_start(resume_context(program, team, run.task), *program.flags.resume, program.session,
                 resuming_run(run, team.size()));
  if (!start) {
    team.agree("plan", [&] { run.plan = make_plan(run.task, team.member()); });
    return std::nullopt;
  }
  const Manifest& manifest = start->checkpoint.manifest;
  team.agree("plan", [&] {
    const ResumePoint point{.step = manifest.step, .position = {manifest.epoch, manifest.consumed}};
    run.plan = make_plan(run.task, team.member(), point);
  });
  const ResumingRun now = resuming_run(run, team.size());
  start->warning = run.plan.rules.restore(manifest, now.facts).value_or("");
  start->beginning = beginning_of(start->checkpoint, now);
  start->topology = line_about_topology(run, team.size(), manifest.facts);
  return start;
}

}  // namespace decent
