#pragma once
// From the recipe to what a run tells.

#include "decent/report/reporter.h"
#include "decent/train/run.h"

namespace decent {

/// What the recipe asks for, on `workers` workers; `quiet` shows no progress.
ReporterOptions reporter_options(const Run& run, int workers, bool quiet);

}  // namespace decent
