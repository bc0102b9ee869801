#pragma once
// How the workers came out of a stage that all of them go through.

#include <string>
#include <vector>

#include "decent/core/error.h"

namespace decent {

/// How one worker came out of a stage.
struct Outcome {
  ExitCode code = ExitCode::done;
  std::string message;
};

/// Whether the stage went well for every worker.
bool all_done(const std::vector<Outcome>& outcomes);

/// Throws what a stage of all workers came to: nothing where all are done, else a SharedError with
/// the first failed worker's code. Where not all failed alike, it names the ranks that it is about.
void throw_if_failed(const std::vector<Outcome>& outcomes);

}  // namespace decent
