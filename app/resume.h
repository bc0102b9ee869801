#pragma once
// The start of a run that goes on from a checkpoint.

#include <optional>
#include <string>
#include <vector>

#include "decent/train/checkpoint_search.h"
#include "decent/train/setup.h"
#include "program.h"

namespace decent {

struct StartingPoint {
  FoundCheckpoint checkpoint;
  std::vector<std::string> lines;  // for the user: where the run goes on, and what has changed
};

/// Finds the checkpoint of --resume and makes `setup`'s plan go on from it; nothing where `auto`
/// finds none. Throws SharedError where the recipe is not one that can go on from it. Collective.
std::optional<StartingPoint> find_start(Program& program, Setup& setup);

/// Whether the run in the output folder came to its end already, so that nothing is left to do.
/// Collective.
bool is_complete(Program& program, const Setup& setup, const std::optional<StartingPoint>& start);

struct Output {
  bool leads = true;       // this worker, among those that share the folder
  bool has_start = false;  // the checkpoint that the run goes on from is one of this folder's
};

/// Makes the output folder that of a run after `setup.first_step` steps: later checkpoints are set
/// aside, later lines of the metrics go. Collective.
Output open_output(Program& program, const Setup& setup, const std::optional<StartingPoint>& start);

/// A checkpoint given by --resume or --checkpoint, `auto` or a folder. `must_find`: see
/// CheckpointSearch.
std::optional<FoundCheckpoint> find_checkpoint(Program& program, const Setup& setup,
                                               const std::string& choice, bool must_find);

}  // namespace decent
