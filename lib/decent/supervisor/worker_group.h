#pragma once
// The workers of one attempt: processes of this program.

#include <sys/types.h>

#include <string>
#include <vector>

#include "decent/comm/socket.h"

namespace decent {

/// What the workers run: a file, and its arguments (without the program's own name).
struct WorkerCommand {
  std::string program;
  std::vector<std::string> arguments;
};

/// How a worker ended: by its own exit code, or by a signal.
struct WorkerEnd {
  int rank = 0;
  pid_t process = 0;
  int exit_code = 0;
  int signal = 0;  // 0: it ended by itself

  bool failed() const { return exit_code != 0 || signal != 0; }
};

class WorkerGroup {
 public:
  /// Starts all workers. They share standard input, output and error, the process group and the
  /// terminal of this process. SIGINT and SIGHUP, which a terminal sends to all of them, have no
  /// effect on a worker without a handler: this process acts on them instead. If this process ends,
  /// the kernel sends them SIGTERM. Throws UserError if the program is not there or the system
  /// refuses another process. Only for a process with one thread.
  WorkerGroup(const WorkerCommand& command, int workers);
  /// Kills the workers that still run.
  ~WorkerGroup();
  WorkerGroup(const WorkerGroup&) = delete;
  WorkerGroup& operator=(const WorkerGroup&) = delete;

  int running() const;
  /// Whether all workers have begun to save on signals (app/main.cpp).
  bool saves_on_signals();
  /// Whether all workers, also those that have ended, have done their first step.
  bool has_stepped();
  /// The workers that have ended since the last call, in the order in which the system reports
  /// them.
  std::vector<WorkerEnd> take_ended();
  void signal(int signal);

 private:
  struct Worker {
    pid_t process = 0;  // 0: it has ended
    Socket socket;      // closed with this process, which the worker notices
    bool saves_on_signals = false;
    bool has_stepped = false;
  };
  void start(const WorkerCommand& command, int rank, const Socket& store);
  void listen();

  std::vector<Worker> workers_;
};

}  // namespace decent
