#pragma once
// Which checkpoints a run leaves.

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/config/recipe.h"

namespace decent {

/// Removes the checkpoints that `keep` and `keep_best`, of which higher values may be better, do
/// not ask for. One worker of those that share the folder does it, when a newer one is durable
/// everywhere. Throws WriteError.
void prune_checkpoints(const CheckpointFolder& folder, const CheckpointRecipe& recipe,
                       bool higher_is_better);

}  // namespace decent
