#pragma once
// What a run has learned of its training data, wherever it keeps it.

#include <filesystem>
#include <optional>

#include "decent/config/recipe.h"
#include "decent/data/learned.h"
#include "decent/data/source.h"
#include "decent/report/run_folder.h"

namespace decent {

/// What `source`, opened as data.train says, has learned, and the transforms behind it. Throws
/// UserError for an unknown format.
LearnedData learned_of(const Source& source, const DataRecipe& data);

/// data.json of the run in that folder or, where it is lost, of the run's newest checkpoint that
/// has it whole. Of a run of an older version, which has none, the names in classes.json; nothing
/// is known of a folder without either. Throws UserError for a damaged file.
LearnedData learned_in(const RunFolder& run);

/// The same of the checkpoint in that folder; nothing of one that an older program saved, or that
/// is not there. Throws CheckpointDamaged.
std::optional<LearnedData> learned_in_checkpoint(const std::filesystem::path& folder);

/// The same of the run from which the file of model.weights came or, where that tells nothing, the
/// file of model.path. Throws UserError where what the file carries is damaged.
std::optional<LearnedData> learned_in_model(const ModelRecipe& model);

/// Whether the program in a model's file normalizes by itself, as a run has written it. Weights do
/// not, wherever they come from. Throws UserError where what the file carries is damaged.
bool normalizes_by_itself(const std::filesystem::path& model);

}  // namespace decent
