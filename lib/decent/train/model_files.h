#pragma once
// The files of the averaged model.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "decent/report/run_folder.h"
#include "decent/resume/context.h"
#include "decent/task/task.h"

namespace decent {

/// Writes task.model in the format that the file's name says, with what data.export_transforms puts
/// into it. A file that is written back is checked: task.model then has the weights as the file
/// holds them. Returns a line for the user about that, or nothing. Throws WriteError.
std::string write_checked(Task& task, const std::filesystem::path& path);

/// The model files of a run, what each is and its path: TorchScript, weights, and the format of
/// model.path where that is written back.
using ModelFiles = std::vector<std::pair<std::string, std::filesystem::path>>;
ModelFiles model_files(const Recipe& recipe, RunModel which);

/// Writes those of the averaged model, which task.model is, and then, with checkpoint.keep_best,
/// those of the best checkpoint's, which task.model is afterwards. Returns what the summary of the
/// run says of them: what each is, and its path. Collective. Throws SharedError.
std::vector<std::pair<std::string, std::string>> export_models(const ResumeContext& context,
                                                               Task& task);

}  // namespace decent
