#include "decent/train/model_files.h"

#include <optional>

#include "decent/config/scalars.h"
#include "decent/core/error.h"
#include "decent/model/file_extras.h"
#include "decent/model/formats.h"
#include "decent/model/peft.h"
#include "decent/train/announcements.h"
#include "decent/train/averaged_model.h"
#include "decent/train/export_check.h"

namespace decent {
namespace {

// If a format cannot hold the trained weights (as float16 may not), a run that is over still gets
// its other files.
void write_back(const ResumeContext& context, Task& task, const std::filesystem::path& file) {
  try {
    context.log.file_only(write_checked(task, file));
  } catch (const UserError& error) {
    context.log.warn("'" + file.string() + "' is not written: " + error.what());
  }
}

void write_adapters(const ResumeContext& context, Task& task, RunModel which) {
  const RunFolder folder(task.recipe.output);
  save_adapters(*task.model, task.lora.value(), folder.adapters(which));
  const std::string why_not = save_for_peft(*task.model, folder.peft(which));
  if (!why_not.empty())
    context.log.info("'" + folder.peft(which).string() + "' is not written for PEFT: " + why_not);
}

// A file that is written back comes last: checking it may round the weights.
void write(const ResumeContext& context, Task& task, RunModel which) {
  context.team.agree(which == RunModel::last ? "export" : "export best", [&] {
    if (!context.team.speaks()) return;
    const std::filesystem::path adapters = RunFolder(task.recipe.output).adapters(which);
    for (const auto& [what, file] : model_files(task.recipe, which)) {
      if (file == adapters) {
        write_adapters(context, task, which);
      } else if (is_written_back(file)) {
        write_back(context, task, file);
      } else {
        write_checked(task, file);
      }
    }
  });
}

// Returns its entry in the summary. Nothing if no evaluation gave a number (such as the AUC of data
// of one class) or the checkpoint is damaged: the run is over and has its other files.
std::optional<std::string> export_best(const ResumeContext& context, Task& task) {
  const std::string& metric = *task.recipe.checkpoint.keep_best;
  std::optional<AveragedModel> best;
  try {
    best = load_average(context, task, "best");
  } catch (const SharedError& error) {
    const ExitCode code = error.code();
    if (code != ExitCode::user_error && code != ExitCode::checkpoint_damaged) throw;
    context.log.warn("checkpoint.keep_best: there is no best model: " + std::string(error.what()));
    return std::nullopt;
  }
  write(context, task, RunModel::best);
  return RunFolder(task.recipe.output).model(RunModel::best, ".pt").string() + " (" + metric + " " +
         number_text(find_number(best->metrics, metric).value()) + " at step " +
         std::to_string(best->step) + ")";
}

}  // namespace

std::string write_checked(Task& task, const std::filesystem::path& path) {
  LearnedData data = task.learned;
  data.normalizes = holds_scaling(path) && (task.model_normalizes || !task.scaling.empty());
  const MergedAdapters merged(task.model->adapters());  // also while the file is checked
  write_model(*task.model, path,
              {.scaling = task.scaling,
               .data = print_if_whole(data),
               .for_training = task.recipe.model.export_mode == ExportMode::train});
  return is_written_back(path) ? check_export(task, path) : "";
}

ModelFiles model_files(const Recipe& recipe, RunModel which) {
  const RunFolder folder(recipe.output);
  ModelFiles files = {{"TorchScript", folder.model(which, ".pt")},
                      {"weights", folder.model(which, ".safetensors")}};
  if (recipe.model.lora) files.emplace_back("adapters", folder.adapters(which));
  const ModelFormat* own = find_model_format(recipe.model.path);
  if (own != nullptr && is_written_back(recipe.model.path))
    files.emplace_back(own->name, folder.model(which, own->extension));
  return files;
}

std::vector<std::pair<std::string, std::string>> export_models(const ResumeContext& context,
                                                               Task& task) {
  write(context, task, RunModel::last);
  for (const std::string& warning : mode_warnings(task)) context.log.warn(warning);
  std::vector<std::pair<std::string, std::string>> texts;
  for (const auto& [what, file] : model_files(task.recipe, RunModel::last))
    texts.emplace_back(what, file.string());
  if (task.recipe.checkpoint.keep_best) {
    if (const auto best = export_best(context, task)) texts.emplace_back("best", *best);
  }
  return texts;
}

}  // namespace decent
