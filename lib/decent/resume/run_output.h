#pragma once
// The output folder of a run that begins, resumes or is complete already.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decent/resume/checkpoint_search.h"
#include "decent/resume/context.h"

namespace decent {

/// How a run uses its output folder.
struct RunOutputOptions {
  const FoundCheckpoint* start = nullptr;  // that it resumes from; null: it begins
  bool resume_asked = false;               // --resume was given, even where there is no checkpoint
  bool goes_back = false;                  // the user chose the checkpoint: --resume DIR
};

struct RunOutput {
  std::vector<int> leaders;  // by rank: the lowest of those that share its folder
  /// Whether the checkpoint that the run resumes from is one of this folder's.
  bool holds_checkpoint = false;
};

/// Makes the output folder that of a run after the step of its start: later checkpoints are set
/// aside, later lines of the metrics go. Where the run goes back, or begins where there was a run,
/// metrics and models are set aside, too. Collective. Throws SharedError.
RunOutput open_output(const ResumeContext& context, const RunOutputOptions& options);

/// Where a run that would resume comes to its end.
struct PlannedEnd {
  std::int64_t step = 0;
  bool same_stop = false;  // train.stop is that of the run in the output folder
};

/// Whether the run in the output folder came to its end already, so that nothing is left to do;
/// says so. `planned`: of the run that would resume from `start`. Collective.
bool is_complete(const ResumeContext& context, const FoundCheckpoint* start,
                 const PlannedEnd& planned);

/// Leaves the checkpoints that the recipe asks for, and nothing of a save that was cut short: what
/// a run that was killed at its very end had no time for. Collective.
void tidy_checkpoints(const ResumeContext& context);

}  // namespace decent
