#pragma once
// `decent-train --workers N`: starts the workers of one machine, passes signals on to them, and
// starts them again after a failure.

#include <chrono>
#include <functional>
#include <string>

#include "decent/supervisor/worker_group.h"

namespace decent {

struct SupervisorOptions {
  int workers = 1;
  /// How often all workers may be started again after one was lost or crashed (exit codes 3 and 1,
  /// or a signal). Other failures would come again.
  int max_restarts = 0;
  /// How long the others may go on after one has failed, in seconds; at most 2 s where they have
  /// not all begun to train. They end by themselves, unless they still wait for the one that
  /// failed.
  std::chrono::duration<double> patience{15};
  /// What the workers run at the first start (0), at the first restart (1), ..
  std::function<WorkerCommand(int restarts)> command;
  /// Takes a line for the user. The workers tell of their failures themselves, except of signals.
  std::function<void(const std::string&)> say;
};

/// Returns when no worker is left: the exit code of the first one that failed, 3 if a signal ended
/// it, 0 if none failed. The first SIGINT, SIGTERM, SIGUSR1 or SIGHUP is passed on, so that the
/// workers save and stop (exit code 75). A second one, or a first one while there is nothing to
/// save, kills the workers: 128 and the signal's number. The same holds for a signal to one worker
/// while there is nothing to save. SIGHUP that this process ignores is not taken. Only for a
/// process with one thread. Throws UserError if workers cannot be started.
int supervise(const SupervisorOptions& options);

}  // namespace decent
