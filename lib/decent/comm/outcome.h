#pragma once
// The outcomes of a stage that all workers run.

#include <string>
#include <vector>

#include "decent/core/error.h"

namespace decent {

/// The outcome of a stage on one worker. `message` is empty if it is done.
struct Outcome {
  ExitCode code = ExitCode::done;
  std::string message;
};

/// Whether the stage succeeded on every worker.
bool all_done(const std::vector<Outcome>& outcomes);

/// Throws SharedError with the first failed worker's code if the stage failed on any worker. If not
/// all workers failed in the same way, the message names the ranks that it is about.
void throw_if_failed(const std::vector<Outcome>& outcomes);

}  // namespace decent
