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
  /// or a signal). Other failures would happen again.
  int max_restarts = 0;
  /// If a worker dies twice in a row before its first step (a broken core, too little memory), all
  /// are started again with one fewer, but not with fewer than these; 0: always with all.
  int min_workers = 0;
  /// How long the other workers may go on after one has failed, in seconds; at most 2 s if not all
  /// have begun to train. They end by themselves, unless they still wait for the failed one.
  std::chrono::duration<double> patience{15};
  /// Returns what the workers run at the first start (0), at the first restart (1), ..
  std::function<WorkerCommand(int restarts)> command;
  /// Takes a line for the user. The workers report their own failures, unless a signal killed them.
  std::function<void(const std::string&)> say;
};

/// Returns when no worker is left: the exit code of the first one that failed, 3 if a signal ended
/// it, 0 if none failed. The first SIGINT, SIGTERM, SIGUSR1 or SIGHUP is passed on, so that the
/// workers save and stop (exit code 75). A second signal, or a first one while there is nothing to
/// save, kills the workers, and the result is 128 plus the signal's number. The same holds for a
/// signal to one worker while there is nothing to save. SIGHUP stays ignored if this process
/// ignores it. Only for a process with one thread. Throws UserError if workers cannot be started.
int supervise(const SupervisorOptions& options);

}  // namespace decent
