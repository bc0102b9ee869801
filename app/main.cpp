// decent-train: flags, the one place where errors end the program, nothing else.

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "decent/comm/world.h"
#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/version.h"
#include "decent/train/log.h"
#include "decent/train/run_folder.h"
#include "decent/train/setup.h"
#include "decent/train/trainer.h"
#include "flags.h"

namespace decent {
namespace {

// Lives outside of the try block: after an error nothing is destroyed that may still have work
// under way with peers.
struct Program {
  Flags flags;
  Launch launch;
  std::optional<World> world;
  std::optional<Log> log;
  std::unique_ptr<Trainer> trainer;
};

std::string bug_message(const std::exception& error) {
  // LibTorch's errors carry a C++ stack trace from the second line on.
  const std::string text = error.what();
  return "this is a bug in decent-train, please report it: " + text.substr(0, text.find('\n'));
}

/// Runs one stage of starting up on every worker and goes on only where all of them came through.
template <typename Stage>
void agree(World& world, const std::string& name, Stage stage) {
  Outcome outcome;
  try {
    stage();
  } catch (const Error& error) {
    outcome = {error.code(), error.what()};
  } catch (const std::exception& error) {
    outcome = {ExitCode::bug, bug_message(error)};
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

void start_folder(const Recipe& recipe, const RunFolder& folder, Log& log) {
  create_folders(folder.path());
  write_file(folder.recipe(), print_recipe(recipe));
  log.open_file(folder.log());
}

void train(Program& program) {
  use_plain_executor();
  const bool main_worker = program.launch.rank == 0;
  std::optional<Setup> setup;
  std::optional<RunFolder> folder;
  agree(*program.world, "setup", [&] {
    const Recipe recipe = load_recipe(program.flags.config, program.flags.overrides);
    folder.emplace(recipe.output);
    if (main_worker) folder->check_free();
    setup = prepare(recipe, program.launch);
  });
  std::shared_ptr<Communicator> communicator;
  agree(*program.world, "connect", [&] { communicator = program.world->communicator(); });
  program.log.emplace(program.launch.rank, program.flags.verbosity);
  agree(*program.world, "output", [&] {
    if (main_worker) start_folder(setup->recipe, *folder, *program.log);
  });
  program.trainer =
      std::make_unique<Trainer>(std::move(*setup), std::move(communicator), *program.log, *folder);
  program.trainer->train();
  agree(*program.world, "export", [&] { program.trainer->export_average(); });
}

void print_config(Program& program) {
  std::string text;
  agree(*program.world, "recipe",
        [&] { text = print_recipe(load_recipe(program.flags.config, program.flags.overrides)); });
  if (program.launch.rank == 0) std::fputs(text.c_str(), stdout);
}

void run(Program& program, int argc, char** argv) {
  program.launch = read_launch();
  program.world.emplace(program.launch);
  agree(*program.world, "flags", [&] { program.flags = parse_flags(argc, argv); });
  const bool main_worker = program.launch.rank == 0;
  if (program.flags.help) {
    if (main_worker) std::fputs(help_text().c_str(), stdout);
  } else if (program.flags.version) {
    if (main_worker)
      std::printf("decent-train %s (build %s)\n", version().data(), build_id().data());
  } else if (program.flags.print_config) {
    print_config(program);
  } else {
    train(program);
  }
}

void print_error(const Program& program, const std::string& message) {
  const bool alone = program.launch.world_size == 1;
  const std::string who = alone ? "" : "rank " + std::to_string(program.launch.rank) + ": ";
  std::fprintf(stderr, "decent-train: error: %s%s\n", who.c_str(), message.c_str());
}

/// Reports the error that is being handled. Returns the exit code.
ExitCode report_error(Program& program) {
  try {
    throw;
  } catch (const SharedError& error) {
    if (program.launch.rank == 0) std::fprintf(stderr, "decent-train: error: %s\n", error.what());
    program.world->leave_after_rank_0();
    return error.code();
  } catch (const Error& error) {
    print_error(program, error.what());
    return error.code();
  } catch (const std::exception& error) {
    const bool verbose = program.flags.verbosity == Verbosity::verbose;
    print_error(program, verbose ? error.what() : bug_message(error));
    return ExitCode::bug;
  }
}

}  // namespace
}  // namespace decent

int main(int argc, char** argv) {
  // A peer or store that closes its connection is an error of the write (exit 3), not the end of
  // this process. Python does the same, so that all ways to start the program behave alike.
  std::signal(SIGPIPE, SIG_IGN);
  decent::Program program;
  try {
    decent::run(program, argc, argv);
  } catch (...) {
    const decent::ExitCode code = decent::report_error(program);
    if (program.trainer) program.trainer->note_failure();
    std::fflush(nullptr);
    std::_Exit(static_cast<int>(code));  // destructors might wait for peers that are gone
  }
  if (std::fflush(stdout) == 0) return 0;
  std::perror("decent-train: error: cannot write to stdout");
  return static_cast<int>(decent::ExitCode::write_failed);
}
