#pragma once
// Which run a checkpoint belongs to. Every run has a random id, which stands in its checkpoints.

#include <string>

#include "decent/report/run_folder.h"
#include "decent/resume/checkpoint_search.h"

namespace decent {

/// Whether the checkpoint is of the run in the output folder.
bool is_of_run(const FoundCheckpoint& found, const RunFolder& folder);

/// The id of the run of `recipe` (print_recipe) that resumes from a checkpoint: that of the run in
/// the output folder, or `fresh` where the folder holds no run yet, or a run of the same recipe
/// that has not saved a checkpoint, so that a new run begins with the checkpoint. Throws UserError
/// where the folder holds another run.
std::string resumed_run_id(const FoundCheckpoint& found, const RunFolder& folder,
                           const std::string& recipe, const std::string& fresh);

}  // namespace decent
