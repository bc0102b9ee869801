// --eval-only, --predict and --export: they do not train, and write only what was asked for.

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "decent/comm/gather.h"
#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/model/formats.h"
#include "decent/report/page/page.h"
#include "decent/report/predictions/formats.h"
#include "decent/report/progress.h"
#include "decent/runfolder/metrics_file.h"
#include "decent/runfolder/run_folder.h"
#include "decent/task/finite_check.h"
#include "decent/task/learned_in.h"
#include "decent/task/predicted.h"
#include "decent/task/probabilities.h"
#include "decent/train/announcements.h"
#include "decent/train/averaged_model.h"
#include "decent/train/class_report.h"
#include "decent/train/data_warnings.h"
#include "decent/train/evaluation/evaluator.h"
#include "decent/train/model_files.h"
#include "decent/train/predictions/predictor.h"
#include "decent/train/run_recipe.h"
#include "program.h"

namespace decent {
namespace {

// "0 3, 1 12": how many samples of each class; empty if there are no classes, or many.
std::string classes_text(const PredictionCounts& counts, const std::vector<std::string>& names) {
  constexpr std::size_t kMostShown = 20;
  if (counts.of_classes.size() > kMostShown) return "";
  std::vector<std::string> parts;
  for (const auto& [number, count] : counts.of_classes) {
    const auto place = static_cast<std::size_t>(number);
    const std::string name =
        place < names.size() ? in_quotes(names[place]) : std::to_string(number);
    parts.push_back(std::to_string(count) + " of class " + name);
  }
  return join(parts);
}

// Writes the predictions of the current model of `tried` for its data.predict. Collective. Throws
// SharedError.
void write_predictions(Program& program, const Team& team, TriedTask& tried,
                       DataWarnings& warnings) {
  Task& task = tried.task;
  const std::filesystem::path path = program.flags.predict_file.value();
  std::vector<std::string> names;
  std::unique_ptr<PredictionFile> file;
  team.agree("prediction file", [&] {
    if (!team.speaks()) return;
    names = names_of_classes(task, *task.predict, static_cast<std::size_t>(tried.trial.classes));
    file = find_prediction_format(path)->open(path, names);
  });
  const bool probabilities = task.model->gives_logits() || gives_probabilities(task, tried.trial);
  // Rank 0 decides: workers that also evaluated have tried other batches.
  const bool agreed = team.gather("gives probabilities", probabilities).front();
  const PredictionCounts counts = Predictor(task, team, agreed).run(file.get());
  warnings.tell(team, task);
  program.log->info("predicted " + counted(counts.samples, "sample") + " of data.predict: '" +
                    path.string() + "'");
  if (counts.not_finite > 0) {
    program.log->warn("the model's outputs for " + counted(counts.not_finite, "sample") +
                      " are not finite (the first is row " +
                      std::to_string(counts.first_not_finite) +
                      "): a class or a probability of such a sample means nothing");
  }
  const std::string classes = classes_text(counts, names);
  if (!classes.empty()) program.log->info(classes);
}

// Names data.eval if the run in the output folder was not evaluated on it.
std::string foreign_source(const Recipe& recipe) {
  const auto eval_of = [](const Recipe& each) {
    return value_of(recipe_values(each), "data.eval");
  };
  const std::string source = eval_of(recipe);
  const auto run = recipe_of_run(recipe.output);
  return run && eval_of(*run) == source ? "" : source;
}

void evaluate(Program& program, TriedTask& tried, const Team& team, const AveragedModel& model,
              DataWarnings& warnings) {
  Task& task = tried.task;
  Evaluator evaluator(
      task, team, has_class_report(task) ? EvaluationDetail::confusion : EvaluationDetail::scores);
  // Signals are not caught here: a signal ends the program, so the evaluation is complete.
  const Evaluation evaluation = evaluator.evaluate(model.step).value();
  const EvalMetrics metrics{.step = model.step,
                            .epoch = model.epochs_done,
                            .loss = evaluation.loss,
                            .scores = evaluation.scores,
                            .samples = evaluation.samples,
                            .consensus_distance = model.distance,
                            .source = foreign_source(task.recipe),
                            .checkpoint = model.foreign};
  team.agree("evaluated", [&] {
    if (!team.speaks()) return;
    const std::filesystem::path file = RunFolder(task.recipe.output).metrics();
    if (std::filesystem::exists(file)) MetricsFile(file).write(metrics);
  });
  warnings.tell(team, task);
  announce(*program.log, notices_of_model(task, tried.trial));
  program.log->info(evaluation_line(metrics, model.replicas));
  team.agree("classes", [&] {
    if (!team.speaks()) return;
    for (const std::string& line : report_classes(task, model, evaluation.confusion))
      program.log->info(line);
    const RunFolder folder(task.recipe.output);
    if (std::filesystem::exists(folder.metrics())) write_report(folder, /*running=*/false);
  });
}

// Files that are written back stay as they were, and files of weights compute nothing.
void note_scaling(Program& program, const Task& task) {
  const std::filesystem::path file = *program.flags.export_file;
  if (task.scaling.empty() || holds_scaling(file)) return;
  program.log->warn("data.export_transforms: '" + file.string() +
                    "' takes inputs that are normalized already; only a .pt file holds normalize");
}

// `lost`: the part of the model that is not finite but should be.
void export_model(Program& program, const Team& team, Task& task, const AveragedModel& model,
                  const std::optional<std::string>& lost) {
  std::string line;
  team.agree("exported", [&] {
    if (lost) {
      throw Error(ExitCode::diverged,
                  model.text + " is not finite in " + *lost + ", so that it was not exported");
    }
    if (team.speaks()) line = write_checked(task, *program.flags.export_file);
  });
  program.log->info("exported '" + *program.flags.export_file + "'");
  if (!line.empty()) program.log->info(line);
  note_scaling(program, task);
}

Purpose purpose_of(const Flags& flags) {
  if (flags.eval_only)
    return flags.predict_file ? Purpose::evaluation_and_prediction : Purpose::evaluation;
  return flags.predict_file ? Purpose::prediction : Purpose::model;
}

}  // namespace

void use_checkpoint(Program& program) {
  const bool evaluates = program.flags.eval_only;
  const bool predicts = program.flags.predict_file.has_value();
  TriedTask tried = prepare_task_together(program, purpose_of(program.flags));
  Task& task = tried.task;
  if (evaluates && !task.eval) {
    throw SharedError(ExitCode::user_error,
                      "--eval-only: data.eval is null, so that there is nothing to evaluate on");
  }
  const Team team = connect(*program.world, task);
  program.log.emplace(program.launch.rank, program.flags.verbosity);
  const FiniteCheck finite(*task.model);
  const AveragedModel model =
      load_average(resume_context(program, team, task), task, program.flags.checkpoint);
  const auto lost = finite.find_lost(*task.model);
  if ((evaluates || predicts) && lost) program.log->warn(model.text + " is not finite in " + *lost);
  DataWarnings warnings({}, *program.log);
  if (evaluates) evaluate(program, tried, team, model, warnings);
  if (predicts && !evaluates)
    announce(*program.log, {.notes = notes_of_data(task), .warnings = {}});
  if (predicts) write_predictions(program, team, tried, warnings);
  if (program.flags.export_file) export_model(program, team, task, model, lost);
}

}  // namespace decent
