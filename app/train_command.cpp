#include <utility>

#include "commands.h"
#include "decent/checkpoint/facts.h"
#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/report/run_folder.h"
#include "decent/resume/run_output.h"
#include "decent/train/announcements.h"
#include "decent/train/evaluation/evaluation_rules.h"
#include "decent/train/fingerprint.h"
#include "decent/train/recipe_names.h"

namespace decent {
namespace {

/// All workers stop after the same step, so that none is taken for lost by those behind it.
[[noreturn]] void end_stopped(Program& program, const Team& team) {
  // Not as a stage of agree(): saving is collective itself, and what goes wrong with it on one
  // worker must reach the others while they are in it.
  const std::filesystem::path saved = program.trainer->save_stopped();
  team.agree("stop", [&] { program.trainer->note_end("stopped"); });
  const Stop stop = team.control().stop();
  throw SharedError(ExitCode::stopped, "stopped after step " + std::to_string(stop.last_step) +
                                           " by " + stop.cause() + ". Saved '" + saved.string() +
                                           "'; go on with --resume auto");
}

const FoundCheckpoint* found_by(const std::optional<StartingPoint>& start) {
  return start ? &start->checkpoint : nullptr;
}

// Of the run that would resume from `start`: that one's, where train.stop ends the run with it.
std::int64_t last_step_of(const Run& run, const FoundCheckpoint* start) {
  EvaluationRules rules(run.task.recipe, nullptr);
  if (start) rules.restore(start->manifest, facts_of(run));
  return rules.stops() ? start->manifest.step : run.plan.total_steps;
}

// Makes the output folder that of this run, and the trainer, up to its first step.
void begin(Program& program, const Team& team, Run run, std::optional<StartingPoint> start) {
  Log& log = *program.log;
  const bool resumes = program.flags.resume.has_value();
  const RunOutput output = open_output(resume_context(program, team, run.task),
                                       {.start = found_by(start),
                                        .resume_asked = resumes,
                                        .goes_back = resumes && *program.flags.resume != "auto"});
  std::vector<std::string> lines;
  if (start) {
    lines = resume_lines(*start, run.plan.total_steps, program.launch.world_size);
    const Manifest& manifest = start->checkpoint.manifest;
    if (auto line = changed_rates(value_of(manifest.facts, kRatesTopic), run.plan.rates,
                                  manifest.step, run.plan.total_steps))
      lines.push_back(*line);
  } else if (resumes) {
    lines.emplace_back("no checkpoint to resume from: the run starts afresh");
  }
  TrainerOptions options{.launch = program.launch,
                         .run_id = start ? start->run_id : program.session,
                         .leaders = output.leaders,
                         .check_folder = [&program] {
                           if (program.lock) program.lock->check();
                         }};
  program.trainer = std::make_unique<Trainer>(std::move(run), team, log, std::move(options));
  program.training = program.trainer.get();
  for (const std::string& line : lines) log.info(line);
  if (start) {
    program.trainer->resume_from(start->checkpoint, {.in_output = output.holds_checkpoint,
                                                     .from_average = start->from_average,
                                                     .averages = !start->exchange_changes.empty()});
  }
  announce_run(log, program.trainer->run(), program.trainer->size());
}

// Whether the run in the output folder was to end early by the same rule.
bool has_same_stop(const Recipe& recipe) {
  try {
    const Recipe earlier = load_recipe(RunFolder(recipe.output).recipe(), {}, recipe_names());
    return earlier.train.stop == recipe.train.stop;
  } catch (const UserError&) {
    return false;  // nothing of it can be told
  }
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
  if (program.flags.resume && is_complete(resume_context(program, team, run.task), found_by(start),
                                          {.step = last_step_of(run, found_by(start)),
                                           .same_stop = has_same_stop(run.task.recipe)})) {
    tidy_checkpoints(resume_context(program, team, run.task));
    return;
  }
  begin(program, team, std::move(run), std::move(start));
  if (program.trainer->train() == TrainingEnd::stopped) {
    end_stopped(program, team);
  }
  program.trainer->finish();
}

}  // namespace decent
