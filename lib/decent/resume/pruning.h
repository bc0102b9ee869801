#pragma once
// Removing checkpoints that need not be kept.

#include "decent/checkpoint/checkpoint_folder.h"
#include "decent/config/recipe.h"

namespace decent {

/// Removes the checkpoints that `keep` and `keep_best` do not ask for. `higher_is_better`: of the
/// metric `keep_best`. One of the workers that share the folder calls it, once a newer checkpoint
/// is durable everywhere. Throws WriteError.
void prune_checkpoints(const CheckpointFolder& folder, const CheckpointRecipe& recipe,
                       bool higher_is_better);

}  // namespace decent
