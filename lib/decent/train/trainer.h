#pragma once
// The training loop: steps, and between them evaluations and checkpoints.
//
// There is one Trainer per worker; constructor and train() are collective. After an exception,
// exchanges may still be under way: the caller reports the error and ends the process without
// destroying the trainer, since its peers may be gone.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "decent/core/error.h"
#include "decent/resume/checkpointer.h"
#include "decent/resume/starting_point.h"
#include "decent/task/finite_check.h"
#include "decent/train/announcements.h"
#include "decent/train/cadence.h"
#include "decent/train/data_warnings.h"
#include "decent/train/evaluation/evaluator.h"
#include "decent/train/session.h"
#include "decent/train/stop_time.h"
#include "decent/train/train_lines.h"
#include "decent/train/training_step.h"

namespace decent {

enum class TrainingEnd {
  completed,
  stopped,
  lost,  // a worker was lost, and the others have finished their last step without it
};

class Trainer {
 public:
  /// Every worker writes its replica to the output folder, and the worker that speaks all other
  /// files. For the rest see Session.
  Trainer(Run run, Team team, Log& log, SessionOptions options);

  /// Takes over the state of the checkpoint from which the plan of the run resumes. `in_output`:
  /// the checkpoint is in the output folder, on all workers. Call it before train(). Collective.
  void resume_from(FoundCheckpoint& found, BeginWith begin, bool in_output);

  const Run& run() const { return session_.run; }

  /// From now on the run ends with a checkpoint if a worker is lost (parallel.farewell_s), until
  /// the last step is saved. All workers call it before any of them trains.
  void begin_farewells();
  RunSize size() const;

  /// Trains to the end and leaves every worker with the average of all models, or stops after the
  /// step that all workers have agreed on. Collective. Also throws errors of checkpoints that were
  /// being written meanwhile, and WriteError for a trace.
  TrainingEnd train();

  /// Saves the state in which the run has stopped, unless it is saved already, and returns the
  /// folder of the checkpoint. Writes the trace, if steps of it have run. Collective.
  std::filesystem::path save_stopped();

  /// Saves, with the workers that are left, the state in which the run has ended after a loss, and
  /// returns what came of it, for the user: nothing is saved if other workers may save
  /// (Farewell::saves), if no step was trained, or if nobody could write. Collective among the
  /// workers that are left.
  std::string save_of_survivors();

  /// Finishes a run that completed: waits until the last checkpoint is durable; the worker that
  /// speaks then writes the averaged model, the best one if there is one, and the summary.
  /// Collective. Throws the error of the checkpoint, and SharedError: could not write, or diverged
  /// if a number of the model is not finite; then no model is written.
  void finish();

  /// Notes in metrics.jsonl how the run ended, stopped or failed, if that is still possible, and in
  /// run.log the error, if any. Any thread.
  void note_end(const std::string& status, const std::string& error = {});

 private:
  std::int64_t step() const { return session_.step(); }
  Control& control() const { return session_.team.control(); }
  EvaluationRules& rules() { return session_.run.plan.rules; }
  bool is_saved() const { return checkpointer_.last_step() == step(); }
  bool is_evaluated() const { return last_evaluation_ && last_evaluation_->step == step(); }
  bool is_evaluation_due() const;
  bool speaks_for_lost() const;

  void begin_training();
  void settle();
  void begin_line();
  void end_training();
  void warn_of_late_stop();

  bool end_step();
  bool evaluate_first();
  bool save_and_evaluate();
  bool evaluate();
  void note(const EvalMetrics& evaluation);
  [[noreturn]] void save_unevaluated(const SharedError& error);
  NamedTensors state() const;
  Checkpointer::Progress progress();
  void save(bool in_background);

  Session session_;
  TrainLines lines_;
  TrainingStep step_;
  FiniteCheck finite_;
  Cadence evaluations_;
  std::unique_ptr<Evaluator> evaluator_;  // null if nothing is evaluated
  Cadence saves_;
  Checkpointer checkpointer_;
  StopTime stop_time_;
  DataWarnings data_warnings_;
  std::optional<EvalMetrics> last_evaluation_;
  bool is_evaluated_first_ = false;  // the checkpoint was saved before its evaluation
  bool has_stepped_ = false;         // this process, not the run that it resumes
};

}  // namespace decent
