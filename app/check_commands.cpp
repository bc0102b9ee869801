// --dry-run and --print-config: nothing is trained or written.

#include <cstdio>
#include <memory>

#include "commands.h"
#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/train/dry_run.h"

namespace decent {

namespace {

// Throws if a run would be refused after its preparation or in its first step.
void try_start(const Team& team, const Run& run) {
  team.agree("first step", [&] {
    // The weights of a checkpoint may have a finite loss even if those of the model's file do not.
    if (!run.plan.resumes && !run.trial.divergence.empty())
      throw Error(ExitCode::diverged, run.trial.divergence);
  });
}

}  // namespace

void dry_run(Program& program) {
  Run run = prepare_run_together(program);
  const Team team = connect(*program.world, run.task);
  if (program.flags.resume) {
    program.log.emplace(program.launch.rank, program.flags.verbosity);
    if (const auto start = find_start(program, team, run)) {
      for (const auto& line : resume_lines(*start, run.plan.total_steps)) program.log->info(line);
    } else {
      program.log->info("no checkpoint to resume from: the run would start afresh");
    }
  }
  try_start(team, run);
  if (!team.speaks()) return;
  const DryRunOptions options{.full_report = program.flags.verbosity == Verbosity::verbose,
                              .resumes = program.flags.resume.has_value()};
  for (const std::string& line : dry_run_lines(dry_run_facts(run, team.member(), options))) {
    std::printf("%s\n", line.c_str());
  }
}

void print_config(Program& program) {
  std::string text;
  program.world->agree("recipe", [&] { text = print_recipe(program.recipe.get()); });
  if (program.main_worker()) std::fputs(text.c_str(), stdout);
}

}  // namespace decent
