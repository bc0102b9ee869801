#include "program.h"

#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/report/run_folder.h"
#include "decent/task/device.h"
#include "decent/train/fingerprint.h"
#include "decent/train/output_files.h"
#include "decent/train/recipe_names.h"

namespace decent {
namespace {

CommandFiles files_of(const Program& program, Purpose purpose) {
  const Flags& flags = program.flags;
  const std::string checkpoint = flags.resume.value_or(flags.checkpoint);
  CommandFiles files{.config = flags.config,
                     .trains = purpose == Purpose::training,
                     .evaluates = flags.eval_only,
                     .export_file = flags.export_file,
                     .checkpoint = {},
                     .rank = program.launch.rank};
  if (checkpoint != "auto" && checkpoint != "none") files.checkpoint = checkpoint;
  return files;
}

}  // namespace

Outcome outcome_of(const std::exception& error, bool verbose) {
  const std::string trouble = device_trouble(error);
  if (!trouble.empty()) return {ExitCode::user_error, trouble};
  const std::string text = error.what();
  if (verbose) return {ExitCode::bug, text};
  // LibTorch's errors carry a C++ stack trace from the second line on.
  return {ExitCode::bug,
          "this is a bug in decent-train, please report it: " + text.substr(0, text.find('\n'))};
}

// One for each machine first, then whoever sees another folder than those: a fellow that sees the
// same one finds the session in its lock.
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
    // Another run may have begun and ended here since this was looked at first.
    if (for_new_run) RunFolder(folder).check_free();
  });
  program.locked = program.lock.get();
  if (program.lock->supported()) return;
  program.log->warn("the file system of output folder '" + folder.string() +
                    "' has no locks: nothing keeps a second run out of it");
}

std::shared_ptr<Communicator> connect(World& world, const Setup& setup) {
  world.control().set_timeout(std::chrono::duration<double>(setup.recipe.parallel.timeout_s));
  std::shared_ptr<Communicator> communicator;
  world.agree("connect", [&] { communicator = world.communicator(setup.device); });
  return communicator;
}

Setup prepare_together(Program& program, Purpose purpose) {
  use_plain_executor();
  std::optional<Setup> setup;
  program.world->agree("setup", [&] {
    const Recipe recipe =
        load_recipe(program.flags.config, program.flags.overrides, recipe_names());
    const CommandFiles files = files_of(program, purpose);
    check_outputs(files, recipe);
    if (purpose == Purpose::training && !program.flags.dry_run) {
      check_not_held(recipe.output);
      if (!program.flags.resume) RunFolder(recipe.output).check_free();
    }
    setup = prepare(recipe, program.launch, program.world->membership(), purpose);
    check_outputs(files, recipe, setup->model.get());
  });
  compare_workers(*program.world, *setup);
  return std::move(*setup);
}

}  // namespace decent
