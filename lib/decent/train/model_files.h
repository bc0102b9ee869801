#pragma once
// The files of the averaged model.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "decent/resume/context.h"
#include "decent/runfolder/run_folder.h"
#include "decent/task/task.h"

namespace decent {

/// Writes task.model, with the transforms of data.export_transforms, in the format that the file's
/// name says. A file that is written back is checked, after which task.model has the weights as the
/// file holds them, but for weights with adapters. Returns a line for the user about the check, or
/// nothing. Throws WriteError.
std::string write_checked(Task& task, const std::filesystem::path& path);

/// The model files of a run, each with its description and path: TorchScript, weights, and the
/// format of model.path if it can be written back.
using ModelFiles = std::vector<std::pair<std::string, std::filesystem::path>>;
ModelFiles model_files(const Recipe& recipe, RunModel which);

/// Writes the files of task.model, the averaged model. Then, with checkpoint.keep_best, loads the
/// averaged model of the best checkpoint into task.model and writes its files. Returns entries for
/// the summary of the run: what each file is, and its path. Collective. Throws SharedError.
std::vector<std::pair<std::string, std::string>> export_models(const ResumeContext& context,
                                                               Task& task);

}  // namespace decent
