#pragma once
// From the recipe to the options of the reporter.

#include "decent/report/reporter.h"
#include "decent/train/run.h"

namespace decent {

/// The options that the recipe asks for, on `workers` workers. `quiet`: show no progress.
ReporterOptions reporter_options(const Run& run, int workers, bool quiet);

}  // namespace decent
