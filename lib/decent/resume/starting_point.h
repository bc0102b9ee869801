#pragma once
// The checkpoint that a run resumes from, or that an evaluation or export reads.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decent/resume/checkpoint_search.h"
#include "decent/resume/compatibility.h"
#include "decent/resume/context.h"

namespace decent {

/// The checkpoint that the user chose: "auto", the newest whole one in the output folder, "best",
/// the one there that is best by checkpoint.keep_best, or a folder. `must_find`: see
/// CheckpointSearch. Collective.
std::optional<FoundCheckpoint> find_checkpoint(const ResumeContext& context,
                                               const std::string& choice, bool must_find);

struct StartingPoint {
  FoundCheckpoint checkpoint;
  std::string run_id;                // of the run that resumes from it
  std::vector<std::string> changes;  // see check_can_resume
  /// All workers start from the average of the replicas and optimizer states, because there are not
  /// as many as the run has workers or because of `becomes_alike`.
  bool from_average = false;
  /// The workers had parameters and optimizer states of their own, and will have the same.
  bool becomes_alike = false;
  /// Of a run whose exchange needs near copies: see exchange_changes. Where there are any, it
  /// begins with the average of all workers.
  std::vector<std::string> exchange_changes = {};
};

/// What is to resume.
struct Resuming {
  std::string choice;  // --resume: "auto" or a folder
  std::string run_id;  // where a new run begins with the checkpoint
  ResumingRun run;
  bool copies_alike = false;  // all its workers have the same parameters and optimizer states
};

/// Finds the checkpoint to resume from; nothing where `auto` finds none. Collective. Throws
/// SharedError where this run cannot resume from it, or where the output folder holds another run
/// than the checkpoint's.
std::optional<StartingPoint> find_start(const ResumeContext& context, const Resuming& resuming);

/// For the user: which step of how many the run resumes after, on how many workers, and what has
/// changed.
std::vector<std::string> resume_lines(const StartingPoint& start, std::int64_t total_steps,
                                      int workers);

}  // namespace decent
