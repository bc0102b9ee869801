// decent-train: flags, the one place where errors end the program, nothing else.

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "allocator.h"
#include "decent/comm/world.h"
#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/core/file.h"
#include "decent/core/version.h"
#include "decent/train/dry_run.h"
#include "decent/train/fingerprint.h"
#include "decent/train/log.h"
#include "decent/train/run_folder.h"
#include "decent/train/setup.h"
#include "decent/train/trainer.h"
#include "flags.h"
#include "stop_signals.h"

namespace decent {
namespace {

// Lives outside of the try block: after an error nothing is destroyed that may still have work
// under way with peers.
struct Program {
  Flags flags;
  Launch launch;
  std::optional<Log> log;
  std::unique_ptr<World> world;
  std::unique_ptr<Trainer> trainer;
  std::atomic<Trainer*> training =
      nullptr;  // for the control thread, once there is something to note
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

/// All workers stop after the same step, so that none is taken for lost by those behind it.
void end_stopped(Program& program, const Stop& stop) {
  const std::string message = "stopped after step " + std::to_string(stop.last_step) + " by " +
                              stop.signal_text() + " to worker " + std::to_string(stop.rank) +
                              ". Nothing was saved: checkpoints are not supported yet.";
  agree(*program.world, "stop", [&] { program.trainer->note_end("stopped"); });
  throw SharedError(ExitCode::stopped, message);
}

void train(Program& program) {
  use_plain_executor();
  const bool main_worker = program.launch.rank == 0;
  World& world = *program.world;
  std::optional<Setup> setup;
  std::optional<RunFolder> folder;
  agree(world, "setup", [&] {
    const Recipe recipe = load_recipe(program.flags.config, program.flags.overrides);
    folder.emplace(recipe.output);
    if (main_worker) folder->check_free();
    setup = prepare(recipe, program.launch);
  });
  compare_workers(world, *setup);
  world.control().set_timeout(std::chrono::duration<double>(setup->recipe.parallel.timeout_s));
  std::shared_ptr<Communicator> communicator;
  agree(world, "connect", [&] { communicator = world.communicator(); });
  program.log.emplace(program.launch.rank, program.flags.verbosity);
  agree(world, "output", [&] {
    if (main_worker) start_folder(setup->recipe, *folder, *program.log);
  });
  program.trainer = std::make_unique<Trainer>(std::move(*setup), std::move(communicator),
                                              world.control(), *program.log, *folder);
  program.training = program.trainer.get();
  if (program.trainer->train() == TrainingEnd::stopped) {
    end_stopped(program, world.control().stop());
  }
  agree(world, "export", [&] { program.trainer->export_average(); });
}

void dry_run(Program& program) {
  use_plain_executor();
  World& world = *program.world;
  std::optional<Setup> setup;
  agree(world, "setup", [&] {
    setup = prepare(load_recipe(program.flags.config, program.flags.overrides), program.launch);
  });
  compare_workers(world, *setup);
  if (program.launch.rank != 0) return;
  for (const std::string& line : dry_run_lines(dry_run_facts(*setup, program.launch))) {
    std::printf("%s\n", line.c_str());
  }
}

void print_config(Program& program) {
  std::string text;
  agree(*program.world, "recipe",
        [&] { text = print_recipe(load_recipe(program.flags.config, program.flags.overrides)); });
  if (program.launch.rank == 0) std::fputs(text.c_str(), stdout);
}

void print_shared(const SharedError& error) {
  const bool stopped = error.code() == ExitCode::stopped;  // which is no error
  std::fprintf(stderr, "decent-train: %s%s\n", stopped ? "" : "error: ", error.what());
}

void print_error(const Program& program, const std::string& message, int rank) {
  const bool alone = program.launch.world_size == 1;
  const std::string who = alone || rank < 0 ? "" : "rank " + std::to_string(rank) + ": ";
  std::fprintf(stderr, "decent-train: error: %s%s\n", who.c_str(), message.c_str());
}

[[noreturn]] void exit_now(ExitCode code) {
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(code));  // destructors might wait for peers that are gone
}

/// Ends the process because of a failure that all workers have been told of; in the control thread,
/// whatever the training thread is waiting for.
void end_failed(Program& program, const Failure& failure, bool reports) {
  if (Trainer* trainer = program.training.load()) {
    trainer->note_end(failure.code == ExitCode::stopped ? "stopped" : "failed");
  }
  if (reports) print_error(program, failure.message, failure.lost ? -1 : failure.rank);
  std::_Exit(static_cast<int>(failure.code));
}

/// How long a peer may be silent, from the recipe, before the recipe is read for good: peers may be
/// missing before that. A recipe that cannot be read is reported later.
std::chrono::duration<double> timeout_of(int argc, char** argv) {
  try {
    const Flags flags = parse_flags(argc, argv);
    if (!flags.config.empty()) {
      return std::chrono::duration<double>(
          load_recipe(flags.config, flags.overrides).parallel.timeout_s);
    }
  } catch (const Error&) {
  }
  return WorldOptions{}.timeout;
}

void run(Program& program, int argc, char** argv) {
  program.launch = read_launch();
  program.world = std::make_unique<World>(
      program.launch, WorldOptions{.timeout = timeout_of(argc, argv),
                                   .on_failure = [&program](const Failure& failure, bool reports) {
                                     end_failed(program, failure, reports);
                                   }});
  stop_on_signals(program.world->control());
  agree(*program.world, "flags", [&] { program.flags = parse_flags(argc, argv); });
  const bool main_worker = program.launch.rank == 0;
  if (program.flags.help) {
    if (main_worker) std::fputs(help_text().c_str(), stdout);
  } else if (program.flags.version) {
    if (main_worker)
      std::printf("decent-train %s (build %s)\n", version().data(), build_id().data());
  } else if (program.flags.print_config) {
    print_config(program);
  } else if (program.flags.dry_run) {
    dry_run(program);
  } else {
    train(program);
  }
  program.world->control().leave();
}

/// Tells the other workers of an error that only this one knows, and ends with it; before they are
/// connected it only ends.
[[noreturn]] void fail(Program& program, ExitCode code, const std::string& message) {
  if (!program.world) {
    print_error(program, message, program.launch.rank);
    exit_now(code);
  }
  Control& control = program.world->control();
  const Failure failure{
      .code = code, .rank = program.launch.rank, .lost = false, .message = message};
  if (code == ExitCode::peer_lost) {
    control.fail_after_loss(failure);
  } else {
    control.fail(failure);
  }
  exit_now(code);
}

/// Ends the program because of the error that is being handled.
[[noreturn]] void end_with_error(Program& program) {
  try {
    throw;
  } catch (const SharedError& error) {
    if (program.launch.rank == 0) print_shared(error);
    if (program.world) {
      program.world->leave_after_rank_0();
      program.world->control().leave();
    }
    exit_now(error.code());
  } catch (const Error& error) {
    fail(program, error.code(), error.what());
  } catch (const std::exception& error) {
    const bool verbose = program.flags.verbosity == Verbosity::verbose;
    fail(program, ExitCode::bug, verbose ? error.what() : bug_message(error));
  }
}

}  // namespace
}  // namespace decent

int main(int argc, char** argv) {
  decent::keep_freed_memory();
  // A peer or store that closes its connection is an error of the write (exit 3), not the end of
  // this process. Python does the same, so that all ways to start the program behave alike.
  std::signal(SIGPIPE, SIG_IGN);
  decent::Program program;
  try {
    decent::run(program, argc, argv);
  } catch (...) {
    decent::end_with_error(program);
  }
  if (std::fflush(stdout) == 0) return 0;
  std::perror("decent-train: error: cannot write to stdout");
  return static_cast<int>(decent::ExitCode::write_failed);
}
