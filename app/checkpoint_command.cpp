// --eval-only and --export: no training, and nothing is written but what was asked for.

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "commands.h"
#include "decent/checkpoint/facts.h"
#include "decent/config/loader.h"
#include "decent/core/error.h"
#include "decent/model/formats.h"
#include "decent/parallel/tensor_names.h"
#include "decent/report/data_files.h"
#include "decent/report/metrics_file.h"
#include "decent/report/progress.h"
#include "decent/report/run_folder.h"
#include "decent/resume/compatibility.h"
#include "decent/resume/replica_loader.h"
#include "decent/resume/run_identity.h"
#include "decent/task/class_names.h"
#include "decent/task/finite_check.h"
#include "decent/task/probabilities.h"
#include "decent/task/scalings.h"
#include "decent/train/announcements.h"
#include "decent/train/class_report.h"
#include "decent/train/evaluator.h"
#include "decent/train/export_check.h"
#include "decent/train/fingerprint.h"
#include "decent/train/left_out_list.h"
#include "decent/train/recipe_names.h"

namespace decent {
namespace {

// Which model was put into task.model.
struct Averaged {
  std::string text;  // what it is, for messages
  std::int64_t step = 0;
  double epochs_done = 0;
  int replicas = 1;
  double distance = 0;       // of the replicas; see average_replicas
  std::string foreign = {};  // the checkpoint, where it is not of the run in the output folder
};

// Where the run of the checkpoint had names for its classes and data.eval has, they must agree.
void check_classes_of(const FoundCheckpoint& found, const Task& task) {
  std::error_code failed;
  const auto folder = std::filesystem::canonical(found.folder, failed);
  if (failed) return;  // it is on the machines of other workers
  const auto file = RunFolder(folder.parent_path().parent_path()).classes();
  check_classes(*task.eval, task.recipe.data.eval.value(),
                {.names = read_classes(file), .where = "'" + file.string() + "'"});
}

Averaged load_average(Program& program, Task& task, Communicator& communicator) {
  if (program.flags.checkpoint == "none")
    return {.text = "model '" + task.recipe.model.path.string() + "'"};
  const auto found = find_checkpoint(resume_context(program, task), program.flags.checkpoint, true);
  if (!found) {
    throw SharedError(ExitCode::user_error,
                      "there is no checkpoint in '" +
                          RunFolder(task.recipe.output).checkpoints().string() +
                          "'. --checkpoint DIR names one elsewhere, --checkpoint none takes the "
                          "model file as it is");
  }
  program.world->agree("same model", [&] {
    check_same_model(found->manifest, facts_of(task, {}));
    if (task.eval) check_classes_of(*found, task);
  });
  const double distance = average_replicas(
      *found, communicator, model_tensors(task.model->parameters(), task.model->buffers()),
      {.average_buffers = task.recipe.parallel.average_buffers});
  const std::string replicas = std::to_string(found->manifest.world_size);
  const std::string text =
      (replicas == "1" ? "the model" : "the average of " + replicas + " replicas") + " in '" +
      found->folder.string() + "'";
  program.log->info(text);
  return {.text = text,
          .step = found->manifest.step,
          .epochs_done = found->manifest.epochs_done,
          .replicas = static_cast<int>(found->manifest.world_size),
          .distance = distance,
          .foreign = is_of_run(*found, RunFolder(task.recipe.output)) ? "" : found->folder};
}

// data.eval, where the run in the output folder was not evaluated on it.
std::string foreign_source(const Recipe& recipe) {
  const RunFolder folder(recipe.output);
  const auto eval_of = [](const Recipe& each) {
    return value_of(recipe_values(each), "data.eval");
  };
  const std::string source = eval_of(recipe);
  try {
    return eval_of(load_recipe(folder.recipe(), {}, recipe_names())) == source ? "" : source;
  } catch (const UserError&) {
    return source;  // no recipe tells what the run's is
  }
}

void evaluate(Program& program, TriedTask& tried, const Averaged& model,
              const std::shared_ptr<Communicator>& communicator) {
  Task& task = tried.task;
  Evaluator evaluator(
      task, communicator, *program.world,
      has_class_report(task) ? EvaluationDetail::confusion : EvaluationDetail::scores);
  const Evaluation evaluation = evaluator.evaluate(model.step);
  const EvalMetrics metrics{.step = model.step,
                            .epoch = model.epochs_done,
                            .loss = evaluation.loss,
                            .scores = evaluation.scores,
                            .samples = evaluation.samples,
                            .consensus_distance = model.distance,
                            .source = foreign_source(task.recipe),
                            .checkpoint = model.foreign};
  program.world->agree("evaluated", [&] {
    if (!program.main_worker()) return;
    const std::filesystem::path file = RunFolder(task.recipe.output).metrics();
    if (std::filesystem::exists(file)) MetricsFile(file).write(metrics);
  });
  if (task.eval->left_out) LeftOutList({}, *program.log).add(*program.world, *task.eval);
  announce(*program.log, notices_of_model(task, tried.trial));
  program.log->info(evaluation_line(metrics, model.replicas));
  program.world->agree("classes", [&] {
    if (!program.main_worker()) return;
    for (const std::string& line : report_classes(task, evaluation.confusion))
      program.log->info(line);
  });
}

// A line for the user about what was written, where there is one.
std::string write_checked(Task& task, const std::filesystem::path& path) {
  write_model(*task.model, path, exported_scaling(task));
  return is_written_back(path) ? check_export(task, path) : "";
}

// Files that are written back stay as they came, and files of weights compute nothing.
void note_scaling(Program& program, const Task& task) {
  const std::filesystem::path file = *program.flags.export_file;
  if (!task.recipe.data.export_transforms || holds_scaling(file)) return;
  program.log->warn("data.export_transforms: '" + file.string() +
                    "' takes inputs that are normalized already; only a .pt file holds normalize");
}

// `lost`: what of the model is not finite and ought to be.
void export_model(Program& program, Task& task, const Averaged& model,
                  const std::optional<std::string>& lost) {
  std::string line;
  program.world->agree("exported", [&] {
    if (lost) {
      throw Error(ExitCode::diverged,
                  model.text + " is not finite in " + *lost + ", so that it was not exported");
    }
    if (program.main_worker()) line = write_checked(task, *program.flags.export_file);
  });
  program.log->info("exported '" + *program.flags.export_file + "'");
  if (!line.empty()) program.log->info(line);
  note_scaling(program, task);
}

}  // namespace

void use_checkpoint(Program& program) {
  const bool evaluates = program.flags.eval_only;
  TriedTask tried =
      prepare_task_together(program, evaluates ? Purpose::evaluation : Purpose::model);
  Task& task = tried.task;
  World& world = *program.world;
  if (evaluates && !task.eval) {
    throw SharedError(ExitCode::user_error,
                      "--eval-only: data.eval is null, so that there is nothing to evaluate on");
  }
  const std::shared_ptr<Communicator> communicator = connect(world, task);
  program.log.emplace(program.launch.rank, program.flags.verbosity);
  const FiniteCheck finite(*task.model);
  const Averaged model = load_average(program, task, *communicator);
  const auto lost = finite.find_lost(*task.model);
  if (evaluates && lost) program.log->warn(model.text + " is not finite in " + *lost);
  if (evaluates) evaluate(program, tried, model, communicator);
  if (program.flags.export_file) export_model(program, task, model, lost);
}

}  // namespace decent
