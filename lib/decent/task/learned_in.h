#pragma once
// Reads what a run has learned of its training data, wherever it is kept; checks that classes have
// the same numbers in evaluation as in training, and names them.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "decent/config/recipe.h"
#include "decent/data/learned.h"
#include "decent/data/source.h"
#include "decent/runfolder/run_folder.h"
#include "decent/task/sources.h"
#include "decent/task/task.h"

namespace decent {

/// What `source`, opened from data.train, has learned, with the transforms of `data`. Throws
/// UserError for an unknown format.
LearnedData learned_of(const Source& source, const DataRecipe& data);

/// From data.json of the run or, if that is lost, of its newest checkpoint with an undamaged one. A
/// run of an older version has no data.json; then the names in classes.json. Empty if there is
/// neither. Throws UserError for a damaged file.
LearnedData learned_in(const RunFolder& run);

/// The same of the checkpoint in that folder; nullopt if an older program saved it, or if it does
/// not exist. Throws CheckpointDamaged.
std::optional<LearnedData> learned_in_checkpoint(const std::filesystem::path& folder);

/// The same of the run that wrote the file of model.weights or, if that file carries nothing, the
/// file of model.path. Throws UserError if the data in the file is damaged.
std::optional<LearnedData> learned_in_model(const ModelRecipe& model);

/// Whether the program in a model's file normalizes by itself, because a run wrote it so. A file of
/// weights never does. Throws UserError if the data in the file is damaged.
bool normalizes_by_itself(const std::filesystem::path& model);

/// The names of `count` classes, from the task's training data, else from the run in the output
/// folder, else from `data`. Classes without a name get their number. Empty if there are no names
/// at all.
std::vector<std::string> names_of_classes(const Task& task, const DataSet& data, std::size_t count);

/// Throws UserError if a class of data.eval has another name than the class with this number in
/// training: a class that is missing in data.eval shifts the numbers of all later ones. `recipe` is
/// that of data.eval.
void check_classes(const DataSet& eval, const SourceRecipe& recipe, const LearnedData& learned);

}  // namespace decent
