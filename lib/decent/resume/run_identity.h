#pragma once
// Which run a checkpoint belongs to. Every run has a random id, which its checkpoints contain.

#include <string>

#include "decent/resume/checkpoint_search.h"
#include "decent/runfolder/run_folder.h"

namespace decent {

/// Whether the checkpoint belongs to the run in the output folder.
bool is_of_run(const FoundCheckpoint& found, const RunFolder& folder);

/// The id of a run with `recipe` (from print_recipe) that resumes from a checkpoint: the id of the
/// run in the output folder, or `fresh` if a new run begins with the checkpoint, because the folder
/// holds no run yet or only one of the same recipe without checkpoints. Throws UserError if the
/// folder holds another run.
std::string resumed_run_id(const FoundCheckpoint& found, const RunFolder& folder,
                           const std::string& recipe, const std::string& fresh);

}  // namespace decent
