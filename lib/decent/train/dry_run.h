#pragma once
// --dry-run: what a prepared run would do.

#include "decent/comm/launch.h"
#include "decent/train/dry_run_text.h"
#include "decent/train/setup.h"

namespace decent {

/// Everything that --dry-run shows; `full_report`: see model_report. Writes nothing.
DryRunFacts dry_run_facts(const Setup& setup, const Launch& launch, bool full_report);

}  // namespace decent
