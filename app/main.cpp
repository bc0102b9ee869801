// decent-train: flags, the one place where errors end the program, nothing else.

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "allocator.h"
#include "commands.h"
#include "decent/comm/control/launcher_watch.h"
#include "decent/comm/gather.h"
#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/core/random_name.h"
#include "decent/core/version.h"
#include "decent/train/recipe_names.h"
#include "stop_signals.h"

namespace decent {
namespace {

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
  if (OutputLock* lock = program.locked.load()) lock->remove_file();
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
          load_recipe(flags.config, flags.overrides, recipe_names()).parallel.timeout_s);
    }
  } catch (const Error&) {
  }
  return WorldOptions{}.timeout;
}

// What the workers are to do together; folders may have another name on each machine.
std::string command_of(const Flags& flags) {
  std::string text;
  const auto add = [&](bool given, const std::string& flag) {
    if (given) text += (text.empty() ? "" : " ") + flag;
  };
  add(flags.help, "--help");
  add(flags.version, "--version");
  add(flags.print_config, "--print-config");
  add(flags.dry_run, "--dry-run");
  add(flags.resume.has_value(), "--resume " + std::string(flags.resume == "auto" ? "auto" : "DIR"));
  add(flags.eval_only, "--eval-only");
  add(flags.export_file.has_value(), "--export FILE");
  const bool named = flags.checkpoint == "auto" || flags.checkpoint == "none";
  add(flags.eval_only || flags.export_file,
      "--checkpoint " + (named ? flags.checkpoint : std::string("DIR")));
  return text.empty() ? "no such flag" : text;
}

void check_same_command(Program& program) {
  const std::vector<std::string> commands =
      program.world->gather("command", command_of(program.flags));
  for (std::size_t rank = 1; rank < commands.size(); ++rank) {
    if (commands[rank] == commands[0]) continue;
    throw SharedError(ExitCode::user_error, "rank " + std::to_string(rank) + " was started with " +
                                                commands[rank] + ", rank 0 with " + commands[0] +
                                                ": all workers need the same flags");
  }
}

void run(Program& program, int argc, char** argv) {
  program.launch = read_launch();
  program.world = std::make_unique<World>(
      program.launch,
      WorldOptions{
          .timeout = timeout_of(argc, argv),
          .timeout_setting = "parallel.timeout_s",
          .explain = [](const std::exception& error) { return outcome_of(error); },
          .on_failure = [&program](const Failure& failure,
                                   bool reports) { end_failed(program, failure, reports); },
          .launcher = watch_torchrun()});
  program.world->agree("flags", [&] { program.flags = parse_flags(argc, argv); });
  const Flags& flags = program.flags;
  check_same_command(program);
  program.session = program.world->gather("session", random_name()).front();
  program.world->control().on_launcher_end(LauncherEnd::fail);
  if (flags.help) {
    if (program.main_worker()) std::fputs(help_text().c_str(), stdout);
  } else if (flags.version) {
    if (program.main_worker())
      std::printf("decent-train %s (build %s)\n", version().data(), build_id().data());
  } else if (flags.print_config) {
    print_config(program);
  } else if (flags.dry_run) {
    dry_run(program);
  } else if (flags.eval_only || flags.export_file) {
    use_checkpoint(program);
  } else {
    stop_on_signals(program.world->control());
    program.world->control().on_launcher_end(LauncherEnd::stop);
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
    if (program.training && error.code() != ExitCode::stopped) {
      program.trainer->note_end("failed");
    }
    if (program.launch.rank == 0) print_shared(error);
    if (program.world) {
      program.world->leave_after_rank_0();
      program.world->control().leave();
    }
    program.locked = nullptr;
    program.lock.reset();
    exit_now(error.code());
  } catch (const Error& error) {
    fail(program, error.code(), error.what());
  } catch (const std::exception& error) {
    const bool verbose = program.flags.verbosity == Verbosity::verbose;
    const Outcome outcome = outcome_of(error, verbose);
    fail(program, outcome.code, outcome.message);
  }
}

}  // namespace
}  // namespace decent

int main(int argc, char** argv) {
  decent::keep_freed_memory();
  decent::silence_c10d_warnings();
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
