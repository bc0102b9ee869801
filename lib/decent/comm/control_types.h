#pragma once
// What the control planes of the workers tell each other about.

#include <cstdint>
#include <string>
#include <string_view>

#include "decent/core/error.h"

namespace decent {

/// What a worker is doing, for the message about its loss.
enum class Operation : std::uint8_t {
  starting,
  running,  // a loop that does not tell
  waiting_for_data,
  forward,
  backward,
  averaging,
  evaluating,
  exporting,
  saving,
  loading,
};
/// "in forward", "evaluating".
std::string_view text_of(Operation operation);

/// Why a run ends for all its workers.
struct Failure {
  ExitCode code = ExitCode::bug;
  int rank = 0;       // whose failure it is
  bool lost = false;  // gone or silent, rather than failed with a message of its own
  std::string message;
};

/// "SIGTERM".
std::string signal_name(int signal);

/// A stop that was asked for by a signal, or by the end of the launcher.
struct Stop {
  int signal = 0;              // 0: the launcher has ended
  int rank = 0;                // which worker saw it first
  std::int64_t last_step = 0;  // the step after which all workers stop
  std::string cause() const;   // "SIGTERM to worker 1", "the end of torchrun (seen by worker 0)"
};

/// What the end of the launcher means to a run.
enum class LauncherEnd {
  nothing,
  stop,  // after the same step on all workers, as a signal does
  fail,  // there is nothing to save: the workers end at once
};

}  // namespace decent
