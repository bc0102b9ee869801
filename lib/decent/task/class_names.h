#pragma once
// Checks that classes have the same numbers in evaluation as in training, and names them.

#include <cstddef>
#include <string>
#include <vector>

#include "decent/config/recipe.h"
#include "decent/task/sources.h"
#include "decent/task/task.h"

namespace decent {

/// The names of `count` classes, from the task's training data, else from the run in the output
/// folder, else from `data`. Classes without a name get their number. Empty if there are no names
/// at all.
std::vector<std::string> names_of_classes(const Task& task, const DataSet& data, std::size_t count);

/// Throws UserError if a class of data.eval has another name than the class with this number in
/// training: a class that is missing in data.eval shifts the numbers of all later ones. `recipe` is
/// that of data.eval.
void check_classes(const DataSet& eval, const SourceRecipe& recipe, const LearnedData& learned);

}  // namespace decent
