#include "program.h"

#include <vector>

#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/train/device.h"
#include "decent/train/fingerprint.h"
#include "decent/train/output_files.h"

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

void agree(World& world, const std::string& name, const std::function<void()>& stage) {
  Outcome outcome;
  try {
    stage();
  } catch (const Error& error) {
    outcome = {error.code(), error.what()};
  } catch (const std::exception& error) {
    outcome = outcome_of(error);
  }
  std::vector<Outcome> outcomes;
  try {
    outcomes = world.share(name, outcome);
  } catch (const PeerLost&) {
    if (outcome.code != ExitCode::done) throw Error(outcome.code, outcome.message);
    throw;
  }
  throw_if_failed(outcomes);
}

Setup prepare_together(Program& program, Purpose purpose) {
  use_plain_executor();
  std::optional<Setup> setup;
  agree(*program.world, "setup", [&] {
    const Recipe recipe = load_recipe(program.flags.config, program.flags.overrides);
    const CommandFiles files = files_of(program, purpose);
    check_outputs(files, recipe);
    const bool new_run =
        purpose == Purpose::training && !program.flags.resume && !program.flags.dry_run;
    if (new_run) RunFolder(recipe.output).check_free();
    setup = prepare(recipe, program.launch, purpose);
    check_outputs(files, recipe, setup->model.get());
  });
  compare_workers(*program.world, *setup);
  return std::move(*setup);
}

}  // namespace decent
