#pragma once
// --dry-run: what a prepared run would do.

#include "decent/core/membership.h"
#include "decent/report/dry_run_text.h"
#include "decent/train/plan.h"

namespace decent {

struct DryRunOptions {
  bool full_report = false;  // see ModelOrigin::report
  bool resumes = false;      // the output folder may then hold a run already
};

/// Everything that --dry-run shows. Writes nothing.
DryRunFacts dry_run_facts(const Run& run, const Member& member, const DryRunOptions& options);

}  // namespace decent
