#include "commands.h"
#include "decent/core/error.h"
#include "decent/report/run_folder.h"
#include "resume.h"

namespace decent {
namespace {

/// All workers stop after the same step, so that none is taken for lost by those behind it.
[[noreturn]] void end_stopped(Program& program, const Stop& stop) {
  // Not as a stage of agree(): saving is collective itself, and what goes wrong with it on one
  // worker must reach the others while they are in it.
  const std::filesystem::path saved = program.trainer->save_stopped();
  program.world->agree("stop", [&] { program.trainer->note_end("stopped"); });
  throw SharedError(ExitCode::stopped, "stopped after step " + std::to_string(stop.last_step) +
                                           " by " + stop.cause() + ". Saved '" + saved.string() +
                                           "'; go on with --resume auto");
}

}  // namespace

void train(Program& program) {
  World& world = *program.world;
  Setup setup = prepare_together(program, Purpose::training);
  std::shared_ptr<Communicator> communicator = connect(world, setup);
  program.log.emplace(program.launch.rank, program.flags.verbosity);
  for (const std::string& line : setup.model->origin().report(/*full=*/true))
    program.log->detail(line);
  lock_output(program, setup.recipe.output, /*for_new_run=*/!program.flags.resume);
  setup.run_id = program.session;
  std::optional<StartingPoint> start;
  if (program.flags.resume) {
    start = find_start(program, setup);
    if (is_complete(program, setup, start)) {
      tidy_checkpoints(program, setup);
      return;
    }
  }
  const RunFolder folder(setup.recipe.output);
  const Output output = open_output(program, setup, start);
  program.trainer = std::make_unique<Trainer>(std::move(setup), std::move(communicator), world,
                                              *program.log, folder, output.leads);
  program.training = program.trainer.get();
  if (start) {
    for (const std::string& line : start->lines) program.log->info(line);
    program.trainer->go_on_from(start->checkpoint, output.has_start);
    start.reset();  // its files need not stay mapped
  } else if (program.flags.resume) {
    program.log->info("no checkpoint to resume from: the run starts afresh");
  }
  if (program.trainer->train() == TrainingEnd::stopped) {
    end_stopped(program, world.control().stop());
  }
  program.trainer->finish_saving();
  world.agree("export", [&] { program.trainer->export_average(); });
}

}  // namespace decent
