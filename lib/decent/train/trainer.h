#pragma once
// The training loop.
//
// There is one Trainer per worker; constructor and train() are collective. After an exception,
// exchanges may still be under way: the caller reports the error and ends the process without
// destroying the trainer, since its peers may be gone.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decent/comm/launch.h"
#include "decent/comm/team.h"
#include "decent/core/error.h"
#include "decent/core/trace.h"
#include "decent/data/device_batch.h"
#include "decent/parallel/trained_parameters.h"
#include "decent/report/reporter.h"
#include "decent/resume/checkpointer.h"
#include "decent/resume/starting_point.h"
#include "decent/runfolder/log.h"
#include "decent/runfolder/run_folder.h"
#include "decent/task/finite_check.h"
#include "decent/task/loss_watch.h"
#include "decent/train/announcements.h"
#include "decent/train/cadence.h"
#include "decent/train/data_warnings.h"
#include "decent/train/evaluation/evaluator.h"
#include "decent/train/forward/training_forward.h"
#include "decent/train/run.h"
#include "decent/train/step_meter.h"
#include "decent/train/stop_time.h"

namespace decent {

enum class TrainingEnd { completed, stopped };

struct TrainerOptions {
  Launch launch = {};
  std::string run_id;  // of the whole run, for its checkpoints
  /// By rank: the lowest rank that shares its folder, which manages the checkpoints there.
  std::vector<int> leaders = {0};
  /// Called at each line of the metrics and each save; throws if the output folder does not belong
  /// to the run any more.
  std::function<void()> check_folder = [] {};
};

struct ResumeOptions {
  BeginWith begin = BeginWith::own;
  /// Whether the checkpoint is in the output folder, on all workers.
  bool in_output = false;
};

class Trainer {
 public:
  /// The output folder exists on every worker. Every worker writes its replica there, and the
  /// worker that speaks all other files. `log` must outlive the trainer.
  Trainer(Run run, Team team, Log& log, TrainerOptions options);

  /// Takes over the state of the checkpoint from which the plan of the run resumes. Call it before
  /// train(). Collective.
  void resume_from(FoundCheckpoint& found, const ResumeOptions& options);

  const Run& run() const { return run_; }
  RunSize size() const;

  /// Trains to the end and leaves every worker with the average of all models, or stops after the
  /// step that all workers have agreed on. Collective. Also throws errors of checkpoints that were
  /// being written meanwhile, and WriteError for a trace.
  TrainingEnd train();

  /// Saves the state in which the run has stopped, unless it is saved already, and returns the
  /// folder of the checkpoint. Writes the trace, if steps of it have run. Collective.
  std::filesystem::path save_stopped();

  /// Finishes a run that completed: waits until the last checkpoint is durable; the worker that
  /// speaks then writes the averaged model, the best one if there is one, and the summary.
  /// Collective. Throws the error of the checkpoint, and SharedError: could not write, or diverged
  /// if a number of the model is not finite; then no model is written.
  void finish();

  /// Notes in metrics.jsonl how the run ended, stopped or failed, if that is still possible, and in
  /// run.log the error, if any. Any thread.
  void note_end(const std::string& status, const std::string& error = {});

 private:
  std::int64_t step() const { return parallel_->step(); }
  double epoch() const { return run_.plan.sampler->epochs_done(step()); }
  EvaluationRules& rules() { return run_.plan.rules; }
  const EvaluationRules& rules() const { return run_.plan.rules; }
  bool is_saved() const { return checkpointer_->last_step() == step(); }
  bool is_evaluated() const { return last_evaluation_ && last_evaluation_->step == step(); }

  void train_step();
  void micro_step(std::int64_t micro_batch);
  std::unique_ptr<DeviceBatch> next_batch();
  void saw(const StepLoss& loss);
  void backward(const at::Tensor& loss);
  void show(const TrainMetrics& metrics);
  NamedTensors state() const;
  bool has_train_line() const;
  bool is_last_step() const { return step() == run_.plan.total_steps || rules().stops(); }
  StepFacts facts_of_step();
  void begin_train_line();
  void complete(const RunEnd& end);
  bool is_evaluation_due() const;
  bool evaluate_first();
  bool save_and_evaluate();
  bool evaluate();
  void note(const EvalMetrics& evaluation);
  [[noreturn]] void save_unevaluated(const SharedError& error);
  void save(bool in_background);
  void warn_of_late_stop();
  std::unique_ptr<Checkpointer> make_checkpointer(const TrainerOptions& options);

  Run run_;
  Team team_;
  Control& control_;
  Launch launch_;
  Log& log_;
  RunFolder folder_;
  std::shared_ptr<Trace> trace_;        // null if no step of this run is traced
  std::unique_ptr<Reporter> reporter_;  // null except on the worker that speaks
  std::unique_ptr<TrainedParameters> parallel_;
  std::unique_ptr<TrainingForward> forward_;
  std::optional<FiniteCheck> finite_;
  std::unique_ptr<Evaluator> evaluator_;  // null if nothing is evaluated
  std::function<void()> check_folder_;
  Cadence evaluations_;
  Cadence saves_;
  std::unique_ptr<Checkpointer> checkpointer_;
  StopTime stop_time_{0};
  LossWatch loss_watch_;
  WrapWatch wrap_watch_;
  std::unique_ptr<Prefetcher> read_ahead_;
  std::unique_ptr<DeviceBatches> batches_;
  StepMeter meter_;
  double last_loss_ = 0;        // of this worker, mean over micro-batches
  double step_loss_scale_ = 1;  // the loss scale of the last step
  std::optional<EvalMetrics> last_evaluation_;
  bool is_evaluated_first_ = false;  // the checkpoint was saved before its evaluation
  DataWarnings data_warnings_;
};

}  // namespace decent
