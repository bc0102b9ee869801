#pragma once
// Types of what the control planes of the workers tell each other.

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>

#include "decent/core/error.h"

namespace decent {

/// What a worker is doing, for the message about its loss.
enum class Operation : std::uint8_t {
  starting,
  running,  // a loop that does not report its operations
  waiting_for_data,
  forward,
  backward,
  averaging,
  evaluating,
  predicting,
  sharing_scores,
  logging,
  exporting,
  saving,
  loading,
};
/// "in forward", "evaluating".
std::string_view text_of(Operation operation);

/// How far a worker has come. All workers go through the same operations in the same order, so only
/// a worker that is behind can keep another one waiting.
struct Position {
  std::int64_t step = 0;
  std::int64_t turn = 0;  // operations since that step was begun
  Operation operation = Operation::starting;

  std::string text() const;  // "in step 12, in forward"
  bool is_behind(const Position& other) const {
    return std::tie(step, turn) < std::tie(other.step, other.turn);
  }
};

/// Why a run ends for all its workers.
struct Failure {
  ExitCode code = ExitCode::bug;
  int rank = 0;       // the worker that failed; -1: the message names it
  bool lost = false;  // gone or silent, rather than failed with a message of its own
  std::string message;
};

/// "SIGTERM".
std::string signal_name(int signal);

/// A stop that a signal, or the end of the launcher, asked for.
struct Stop {
  int signal = 0;              // 0: the launcher has ended
  int rank = 0;                // which worker saw it first
  std::int64_t last_step = 0;  // the step after which all workers stop
  std::string launcher = {};   // its name
  std::string cause() const;   // "SIGTERM to worker 1", "the end of torchrun (seen by worker 0)"
};

/// What happens to a run when its launcher ends.
enum class LauncherEnd {
  nothing,
  stop,  // after the same step on all workers, as a signal does
  fail,  // the workers end at once; there is nothing to save
};

}  // namespace decent
