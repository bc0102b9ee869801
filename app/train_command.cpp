#include <chrono>
#include <memory>
#include <utility>

#include "commands.h"
#include "decent/checkpoint/facts.h"
#include "decent/comm/lost_workers.h"
#include "decent/config/choices.h"
#include "decent/core/error.h"
#include "decent/resume/history.h"
#include "decent/resume/run_output.h"
#include "decent/resume/topics.h"
#include "decent/runfolder/run_folder.h"
#include "decent/train/announcements.h"
#include "decent/train/run_recipe.h"
#include "tracker.h"

namespace decent {
namespace {

/// All workers stop after the same step, so that none is taken for lost by those behind it.
[[noreturn]] void end_stopped(Program& program, const Team& team, Tracker* tracker) {
  // Not a stage of agree(): saving is itself collective, and an error on one worker must reach the
  // others while they are saving.
  const std::filesystem::path saved = program.trainer->save_stopped();
  team.agree("stop", [&] { program.trainer->note_end("stopped"); });
  // Not as long as others wait for what this worker says.
  if (tracker) tracker->wait(std::chrono::seconds(5));
  const Stop stop = team.control().stop();
  throw SharedError(ExitCode::stopped, "stopped after step " + std::to_string(stop.last_step) +
                                           " by " + stop.cause() + ". Saved '" + saved.string() +
                                           "'; go on with --resume auto");
}

/// Not a stage of agree() either: only the workers that are left take part.
[[noreturn]] void end_lost(Program& program, const Team& team) {
  const std::string saved = program.trainer->save_of_survivors();
  throw SharedError(ExitCode::peer_lost, team.control().farewell().reason() + "\n" + saved);
}

const FoundCheckpoint* found_by(const std::optional<StartingPoint>& start) {
  return start ? &start->checkpoint : nullptr;
}

RunBegins begins_as(const std::optional<std::string>& resume) {
  if (!resume) return RunBegins::afresh;
  return *resume == "auto" ? RunBegins::resuming : RunBegins::going_back;
}

constexpr auto kKeepsFirstStore =
    "torchrun of torch 2.11 keeps the store of the first round for ever, so that this run ends "
    "when a machine joins or takes another one's place: start torchrun with "
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 on every machine (docs/deploy.md)";

// Prepares the output folder for this run, and makes the trainer, ready for its first step.
void begin(Program& program, const Team& team, Run run, std::optional<StartingPoint> start) {
  Log& log = *program.log;
  const RunBegins begins = begins_as(program.flags.resume);
  const RunFolder folder(run.task.recipe.output);
  const RunOutput output =
      open_output(resume_context(program, team, run.task), found_by(start), begins);
  std::vector<std::string> lines;
  if (start) {
    lines = resume_lines(*start, run.plan.total_steps);
    const Manifest& manifest = start->checkpoint.manifest;
    if (auto line = changed_rates(value_of(manifest.facts, kRatesTopic), run.plan.rates,
                                  manifest.step, run.plan.total_steps))
      lines.push_back(*line);
  } else if (begins != RunBegins::afresh) {
    lines.emplace_back("no checkpoint to resume from: the run starts afresh");
  }
  const std::string run_id = start ? start->run_id : program.session;
  SessionOptions options{
      .run_id = run_id,
      .leaders = output.leaders,
      .torchrun = program.launch.torchrun,
      .check_folder =
          [&program] {
            if (program.lock) program.lock->check();
          },
      .take_folder =
          [&program] {
            if (program.lock && !program.lock->held()) program.lock->take(program.session);
          },
      .first_step_done = [&program] { tell_supervisor(program.launch, kFirstStepDone); }};
  program.trainer = std::make_unique<Trainer>(std::move(run), team, log, std::move(options));
  program.training = program.trainer.get();
  for (const std::string& line : lines) log.info(line);
  if (start) {
    if (!start->warning.empty()) log.warn(start->warning);
    program.trainer->resume_from(start->checkpoint, start->beginning.with, output.holds_checkpoint);
  }
  program.trainer->begin_farewells();
  StartEntry said = announce_run(log, program.trainer->run(), program.trainer->size());
  said.run = run_id;
  if (!program.launch.elastic_run.empty()) log.warn(kKeepsFirstStore);
  team.agree("run.json", [&] {
    if (team.speaks()) write_start(log, program.trainer->run(), std::move(said));
  });
  share_run_file(team, output.leaders, folder);
}

// From the worker that writes the run's files, once they are there.
std::unique_ptr<Tracker> start_tracker(Program& program, const Team& team) {
  const Recipe& recipe = program.trainer->run().task.recipe;
  if (!recipe.log.track || !team.speaks()) return nullptr;
  return std::make_unique<Tracker>(std::string(name_of(*recipe.log.track)),
                                   RunFolder(recipe.output).path(), *program.log);
}

// Whether nothing is left to do. The run may end at the very step at which it resumes.
bool is_over(Program& program, const Team& team, const Run& run, const FoundCheckpoint* start) {
  const auto earlier = recipe_of_run(run.task.recipe.output);
  return is_complete(resume_context(program, team, run.task), start,
                     run.plan.rules.stops() ? run.plan.first_step : run.plan.total_steps,
                     earlier && earlier->train.stop == run.task.recipe.train.stop);
}

}  // namespace

void train(Program& program) {
  Run run = prepare_run_together(program);
  const Team team = connect(*program.world, run.task);
  program.log.emplace(program.launch.rank, program.flags.verbosity);
  for (const std::string& line : run.task.model->origin().report(/*full=*/true)) {
    program.log->detail(line);
  }
  const RunFolder folder(run.task.recipe.output);
  lock_output(program, folder.path(), /*for_new_run=*/!program.flags.resume);
  std::optional<StartingPoint> start;
  if (program.flags.resume) start = find_start(program, team, run);
  if (program.flags.resume && is_over(program, team, run, found_by(start))) {
    tidy_checkpoints(resume_context(program, team, run.task));
    return;
  }
  std::unique_ptr<Tracker> tracker;
  try {
    begin(program, team, std::move(run), std::move(start));
    tracker = start_tracker(program, team);
    const TrainingEnd end = program.trainer->train();
    if (end == TrainingEnd::lost) end_lost(program, team);
    if (end == TrainingEnd::stopped) end_stopped(program, team, tracker.get());
  } catch (const GivenUp&) {  // before the first step, or while the workers stop
    end_lost(program, team);
  }
  program.trainer->finish();
  if (tracker) tracker->wait();
}

}  // namespace decent
