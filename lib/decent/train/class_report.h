#pragma once
// The results for each class, which an evaluation without training shows and writes to files.

#include <string>
#include <vector>

#include "decent/task/task.h"
#include "decent/train/averaged_model.h"

namespace decent {

/// Whether a table of classes is useful: if each sample has one class, or the classes have names;
/// but not for the bytes of a text. The task has data.eval.
bool has_class_report(const Task& task);

/// Returns the table as lines for the screen. If the output folder holds the run of `model`, it
/// also writes the scores and the confusion matrix there, as CSV. `confusion`: see Evaluation;
/// empty: no lines. Throws WriteError.
std::vector<std::string> report_classes(const Task& task, const AveragedModel& model,
                                        const std::vector<double>& confusion);

}  // namespace decent
