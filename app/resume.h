#pragma once
// The start of a run that goes on from a checkpoint.

#include <optional>
#include <string>
#include <vector>

#include "decent/report/run_folder.h"
#include "decent/resume/checkpoint_search.h"
#include "decent/train/setup.h"
#include "program.h"

namespace decent {

struct StartingPoint {
  FoundCheckpoint checkpoint;
  std::vector<std::string> lines;  // for the user: where the run goes on, and what has changed
};

/// Finds the checkpoint of --resume and makes `setup`'s plan go on from it; nothing where `auto`
/// finds none. Throws SharedError where the recipe is not one that can go on from it, or where the
/// output folder holds another run than the checkpoint's. Collective.
std::optional<StartingPoint> find_start(Program& program, Setup& setup);

/// Whether the run in the output folder came to its end already, so that nothing is left to do.
/// Collective.
bool is_complete(Program& program, const Setup& setup, const std::optional<StartingPoint>& start);

/// Leaves the checkpoints that the recipe asks for, and nothing of a save that was cut short: what
/// a run that was killed at its very end had no time for. Collective.
void tidy_checkpoints(Program& program, const Setup& setup);

/// Whether a checkpoint is of the run that the folder holds.
bool is_of_run(const FoundCheckpoint& found, const RunFolder& folder);

struct Output {
  bool leads = true;       // this worker, among those that share the folder
  bool has_start = false;  // the checkpoint that the run goes on from is one of this folder's
};

/// Makes the output folder that of a run after `setup.first_step` steps: later checkpoints are set
/// aside, later lines of the metrics go. Where the user chose to go back (--resume DIR), or to
/// start afresh where there was a run, metrics and models are set aside too. Collective.
Output open_output(Program& program, const Setup& setup, const std::optional<StartingPoint>& start);

/// A checkpoint given by --resume or --checkpoint, `auto` or a folder. `must_find`: see
/// CheckpointSearch.
std::optional<FoundCheckpoint> find_checkpoint(Program& program, const Setup& setup,
                                               const std::string& choice, bool must_find);

}  // namespace decent
