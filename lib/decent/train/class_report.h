#pragma once
// What an evaluation by itself tells of each class, on the screen and in files.

#include <string>
#include <vector>

#include "decent/task/task.h"
#include "decent/train/averaged_model.h"

namespace decent {

/// Whether a table of classes says something: of one class a sample, or of classes with names; not
/// of the bytes of a text. The task has data.eval.
bool has_class_report(const Task& task);

/// The table as lines for the screen. Where the output folder holds the run of `model` it also
/// writes the scores and the confusion matrix there, as CSV. `confusion`: as Evaluation has it;
/// empty: no lines. Throws WriteError.
std::vector<std::string> report_classes(const Task& task, const AveragedModel& model,
                                        const std::vector<double>& confusion);

}  // namespace decent
