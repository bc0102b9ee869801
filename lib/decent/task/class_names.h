#pragma once
// The numbers of classes in evaluation, which must be those of training.

#include <cstddef>
#include <string>
#include <vector>

#include "decent/config/recipe.h"
#include "decent/task/sources.h"
#include "decent/task/task.h"

namespace decent {

/// The names of `count` classes: those of the task's training data or, where these are not known,
/// of the run in the output folder, or else those of `data`; numbers where these are too few; empty
/// where nothing names any.
std::vector<std::string> names_of_classes(const Task& task, const DataSet& data, std::size_t count);

/// Throws UserError where a class of data.eval has another name than the class of that number in
/// training: one that the data of evaluation does not have moves the numbers of those after it.
/// `recipe` is that of data.eval.
void check_classes(const DataSet& eval, const SourceRecipe& recipe, const LearnedData& learned);

}  // namespace decent
