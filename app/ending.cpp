#include "ending.h"

#include <cstdio>
#include <cstdlib>
#include <string>

#include "decent/core/error.h"
#include "decent/report/elastic_error.h"

namespace decent {
namespace {

void print_shared(const SharedError& error) {
  const bool stopped = error.code() == ExitCode::stopped;  // a stop is no error
  std::fprintf(stderr, "decent-train: %s%s\n", stopped ? "" : "error: ", error.what());
}

void print_error(const Program& program, const std::string& message, int rank) {
  const bool alone = program.launch.world_size == 1;
  const std::string who = alone || rank < 0 ? "" : "rank " + std::to_string(rank) + ": ";
  std::fprintf(stderr, "decent-train: error: %s%s\n", who.c_str(), message.c_str());
}

// Runs no destructors: they might wait for peers that are gone.
[[noreturn]] void exit_now(ExitCode code) { std::_Exit(static_cast<int>(code)); }

// Only static objects are left to destroy, and this skips them: LibTorch would take a tenth of a
// second to unregister its operators one by one, without any visible effect.
[[noreturn]] void exit_well(ExitCode code) {
#ifdef __SANITIZE_ADDRESS__
  std::exit(static_cast<int>(code));  // looks for leaks
#else
  exit_now(code);
#endif
}

// Ends after an error that every worker knows: one of them tells the user (World::speaker).
void end_together(Program& program, const SharedError& error) {
  if (program.training && error.code() != ExitCode::stopped)
    program.trainer->note_end("failed", error.what());
  const int speaker = program.world ? program.world->speaker() : 0;
  if (program.launch.rank == speaker) print_shared(error);
  write_elastic_error(error.what());
  if (program.world) {
    program.world->leave_after_speaker();
    program.world->control().leave();
  }
  program.locked = nullptr;
  program.lock.reset();
}

// Ends after an error that only this worker knows. It tells the others if they are connected yet.
void end_alone(Program& program, const Outcome& outcome) {
  write_elastic_error(outcome.message);
  if (!program.world) return print_error(program, outcome.message, program.launch.rank);
  Control& control = program.world->control();
  const Failure failure{
      .code = outcome.code, .rank = program.launch.rank, .lost = false, .message = outcome.message};
  if (outcome.code == ExitCode::peer_lost) {
    control.fail_after_loss(failure);
  } else {
    control.fail(failure);
  }
}

// Reports the error that is being handled.
ExitCode tell(Program& program) {
  try {
    throw;
  } catch (const SharedError& error) {
    end_together(program, error);
    return error.code();
  } catch (const Error& error) {
    end_alone(program, {error.code(), error.what()});
    return error.code();
  } catch (const std::exception& error) {
    const Outcome outcome = outcome_of(error, program.flags.verbosity == Verbosity::verbose);
    end_alone(program, outcome);
    return outcome.code;
  }
}

}  // namespace

void end_after_failure(Program& program, const Failure& failure, bool reports) {
  // A worker that the others have given up writes nothing more: they save without it.
  const bool given_up = failure.lost && failure.rank == program.launch.rank;
  if (Trainer* trainer = program.training.load(); trainer != nullptr && !given_up) {
    const bool stopped = failure.code == ExitCode::stopped;
    trainer->note_end(stopped ? "stopped" : "failed", stopped ? "" : failure.message);
  }
  if (OutputLock* lock = program.locked.load(); lock != nullptr && !given_up) lock->remove_file();
  write_elastic_error(failure.message);
  if (reports) print_error(program, failure.message, failure.lost ? -1 : failure.rank);
  exit_now(failure.code);  // stdout is not flushed: the training thread may hold it
}

void end_with_error(Program& program) {
  const ExitCode code = tell(program);
  std::fflush(nullptr);
  exit_now(code);
}

void end_after_workers(int code) {
  std::fflush(nullptr);
  std::_Exit(code);
}

void end_well() {
  if (std::fflush(stdout) == 0) exit_well(ExitCode::done);
  std::perror("decent-train: error: cannot write to stdout");
  exit_well(ExitCode::write_failed);
}

}  // namespace decent
