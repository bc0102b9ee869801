#pragma once
// log.trace of the recipe.

#include <memory>
#include <optional>
#include <string>

#include "decent/core/trace.h"
#include "decent/runfolder/run_folder.h"
#include "decent/train/run.h"

namespace decent {

/// The trace that log.trace asks for, restricted to steps that are still to come; null if there are
/// none, or if it asks for nothing. Nothing is written before those steps are done.
std::shared_ptr<Trace> make_trace(const Run& run, const RunFolder& folder, int rank);

/// A warning if the range lies beyond the last step.
std::optional<std::string> trace_warning(const Run& run);

}  // namespace decent
