#pragma once
// The checkpoint that a run resumes from, or that an evaluation or export reads.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decent/resume/checkpoint_search.h"
#include "decent/resume/compatibility.h"
#include "decent/resume/context.h"
#include "decent/runfolder/metrics_file.h"
#include "decent/runfolder/run_folder.h"

namespace decent {

/// The checkpoint that the user chose: "auto" is the newest whole one in the output folder, "best"
/// the best one there by checkpoint.keep_best; anything else is a folder. `must_find`: see
/// CheckpointSearch. Collective.
std::optional<FoundCheckpoint> find_checkpoint(const ResumeContext& context,
                                               const std::string& choice, bool must_find);

// Which run a checkpoint belongs to. Every run has a random id, which its checkpoints contain.

/// Whether the checkpoint belongs to the run in the output folder.
bool is_of_run(const FoundCheckpoint& found, const RunFolder& folder);

/// The id of a run with `recipe` (from print_recipe) that resumes from a checkpoint: the id of the
/// run in the output folder, or `fresh` if a new run begins with the checkpoint, because the folder
/// holds no run yet or only one of the same recipe without checkpoints. Throws UserError if the
/// folder holds another run.
std::string resumed_run_id(const FoundCheckpoint& found, const RunFolder& folder,
                           const std::string& recipe, const std::string& fresh);

/// What the workers of a run that resumes begin with.
enum class BeginWith {
  own,                  // each with its own replica
  average_of_replicas,  // all with the average of the replicas and of their optimizer states
  average_of_weights,   // all with the average of their weights, each with its own optimizer state
};

struct Beginning {
  BeginWith with = BeginWith::own;
  std::string why = {};  // a line for the user; empty: nothing to tell
};

/// Decides what workers begin with. `now`: the run as it is planned from the checkpoint on.
Beginning beginning_of(const FoundCheckpoint& checkpoint, const ResumingRun& now);

/// What the metrics say if other workers go on from the checkpoint than those that trained until
/// then; nothing if the same ones do. `now`: seconds since the epoch.
std::optional<ResumeMetrics> change_of_workers(const Manifest& manifest, int workers, double now);

/// Where a run resumes.
struct StartingPoint {
  FoundCheckpoint checkpoint;
  std::string run_id;                     // of the run that resumes from the checkpoint
  std::vector<std::string> changes = {};  // see check_can_resume
  Beginning beginning = {};               // see beginning_of
  std::string topology = {};              // see line_about_topology
  std::string warning = {};               // of rules that begin again; empty: none does
};

/// Finds the checkpoint to resume `run` from; nothing if `auto` finds none. What depends on the
/// plan from there on, `beginning`, `topology` and `warning`, is the caller's to find out.
/// `choice`: "auto" or a folder. `fresh_id`: the id of a new run that begins with the checkpoint.
/// Collective. Throws SharedError if this run cannot resume from it, or if the output folder holds
/// a run that is not the checkpoint's.
std::optional<StartingPoint> find_start(const ResumeContext& context, const std::string& choice,
                                        const std::string& fresh_id, const ResumingRun& run);

/// Lines for the user: the step after which the run resumes, the number of all steps, what has
/// changed, and what the workers begin with.
std::vector<std::string> resume_lines(const StartingPoint& start, std::int64_t total_steps);

}  // namespace decent
