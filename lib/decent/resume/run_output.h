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
#include "decent/resume/folder_leaders.h"

namespace decent {

/// Prefix of the files that workers write so that others can see them.
constexpr const char* kMarkerPrefix = ".worker-";

/// Which workers see the same folder: those of one machine, those of a shared file system, or each
/// worker only its own. Makes the folder if it does not exist, and finds the workers, including
/// this one, whose files in it are visible to this worker. Collective. Throws SharedError if a
/// worker cannot write to it.
std::vector<int> workers_sharing(const Team& team, const std::filesystem::path& folder);

/// What the user asked for.
enum class RunBegins {
  afresh,
  resuming,    // --resume auto, even if there is no checkpoint
  going_back,  // --resume DIR
};

struct RunOutput {
  FolderLeaders leaders;
  /// Whether the checkpoint that the run resumes from is in this folder.
  bool holds_checkpoint = false;
};

/// Brings the output folder to the state right after the step of `start` (null: there is no
/// checkpoint): later checkpoints are set aside, and later lines of the metrics are removed. If the
/// run goes back, or begins in a folder that held a run, metrics and models are set aside, too. All
/// folders have the same history then (history.h).
/// Collective. Throws SharedError.
RunOutput open_output(const ResumeContext& context, const FoundCheckpoint* start, RunBegins begins);

/// Whether the run in the output folder is already complete, so that nothing is left to do; if so,
/// logs it. The run that would resume from `start` ends at step `planned`; `same_stop`: its
/// train.stop is that of the run in the folder. Collective.
bool is_complete(const ResumeContext& context, const FoundCheckpoint* start, std::int64_t planned,
                 bool same_stop);

/// Removes checkpoints that the recipe does not keep, and remains of a save that was cut short: a
/// run that was killed at its very end had no time for this. Collective.
void tidy_checkpoints(const ResumeContext& context);

}  // namespace decent
