#pragma once
// The output folder of a run that begins, resumes, or is already complete.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "decent/comm/team.h"
#include "decent/resume/checkpoint_search.h"
#include "decent/resume/context.h"

namespace decent {

/// Prefix of the files that workers write so that others can see them.
constexpr const char* kMarkerPrefix = ".worker-";

/// Which workers see the same folder: those of one machine, those of a shared file system, or each
/// worker only its own. Makes the folder if it does not exist, and finds the workers, including
/// this one, whose files in it are visible to this worker. Collective. Throws SharedError if a
/// worker cannot write to it.
std::vector<int> workers_sharing(const Team& team, const std::filesystem::path& folder);

/// How a run uses its output folder.
struct RunOutputOptions {
  const FoundCheckpoint* start = nullptr;  // where the run resumes; null: it begins
  bool resume_asked = false;               // --resume was given, even if there is no checkpoint
  bool goes_back = false;                  // the user chose the checkpoint: --resume DIR
};

struct RunOutput {
  std::vector<int> leaders;  // by rank: the lowest rank that shares its folder
  /// Whether the checkpoint that the run resumes from is in this folder.
  bool holds_checkpoint = false;
};

/// Brings the output folder to the state right after the step of the start: later checkpoints are
/// set aside, and later lines of the metrics are removed. If the run goes back, or begins in a
/// folder that held a run, metrics and models are set aside, too. Collective. Throws SharedError.
RunOutput open_output(const ResumeContext& context, const RunOutputOptions& options);

/// The end of a run that would resume.
struct PlannedEnd {
  std::int64_t step = 0;
  bool same_stop = false;  // train.stop is the same as in the run in the output folder
};

/// Whether the run in the output folder is already complete, so that nothing is left to do; if so,
/// logs it. `planned`: the end of the run that would resume from `start`. Collective.
bool is_complete(const ResumeContext& context, const FoundCheckpoint* start,
                 const PlannedEnd& planned);

/// Removes checkpoints that the recipe does not keep, and remains of a save that was cut short: a
/// run that was killed at its very end had no time for this. Collective.
void tidy_checkpoints(const ResumeContext& context);

}  // namespace decent
