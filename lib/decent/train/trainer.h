#pragma once
// The training loop.
//
// One Trainer a worker; constructor and train() are collective. An exception leaves the object
// alive, with exchanges perhaps under way: the caller reports it and ends the process without
// destroying the trainer, whose peers may be gone.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "decent/comm/communicator.h"
#include "decent/comm/world.h"
#include "decent/core/trace.h"
#include "decent/data/prefetcher.h"
#include "decent/parallel/decentralized_data_parallel.h"
#include "decent/report/log.h"
#include "decent/report/loss_watch.h"
#include "decent/report/reporter.h"
#include "decent/report/run_folder.h"
#include "decent/report/stop_time.h"
#include "decent/resume/checkpoint_search.h"
#include "decent/resume/checkpointer.h"
#include "decent/task/criterion.h"
#include "decent/task/finite_check.h"
#include "decent/task/trained_module.h"
#include "decent/train/evaluator.h"
#include "decent/train/setup.h"

namespace decent {

enum class TrainingEnd { completed, stopped };

class Trainer {
 public:
  /// `folder` exists on every worker; rank 0 writes there, and every worker its checkpoints, of
  /// which `leads_folder` says whether this one puts them in order: the lowest rank of those that
  /// share the folder. `workers` and `log` must outlive the trainer.
  Trainer(Setup setup, std::shared_ptr<Communicator> world, World& workers, Log& log,
          RunFolder folder, bool leads_folder);

  /// Takes over the state of a checkpoint, whose step and place in the data the setup's plan
  /// begins with. With another number of workers than it had, or where replicas are missing, all
  /// workers take the average. `in_its_place`: it is the output folder's own checkpoint of that
  /// step, on all workers. Before train(). Collective.
  void go_on_from(FoundCheckpoint& found, bool in_its_place);

  /// Trains to the end and leaves every worker with the average of all models, or stops after the
  /// step that all workers have agreed on. Collective. Throws also what went wrong with a
  /// checkpoint that was being written meanwhile, and WriteError for a trace.
  TrainingEnd train();

  /// Waits until the last checkpoint is durable. Collective. Throws what went wrong with it.
  void finish_saving() { checkpointer_->wait(); }

  /// Saves where the run has stopped, unless it is saved already, and gives the folder of the
  /// checkpoint; writes the trace, if it was in its steps. Collective.
  std::filesystem::path save_stopped();

  /// Writes the averaged model and the summary on rank 0. Throws WriteError, and on every worker
  /// Error with ExitCode::diverged where a number of the model has been lost: then nothing is
  /// written.
  void export_average();

  /// Notes in metrics.jsonl how the run ended, if that is still possible: stopped or failed. Any
  /// thread.
  void note_end(const std::string& status);

 private:
  using Clock = std::chrono::steady_clock;
  // What went by since the last train line of the metrics.
  struct Interval {
    std::int64_t steps = 0;
    double step_s = 0;
    double data_wait_s = 0;
  };
  // A train line whose loss and norm are still being averaged over the workers.
  struct PendingLine {
    TrainMetrics metrics;
    at::Tensor sums;  // [2], float64
    Pending work;
  };

  std::int64_t step() const { return parallel_->step(); }
  double epoch() const { return setup_.sampler->epochs_done(step()); }
  bool main_worker() const { return world_->rank() == 0; }

  void train_step();
  double micro_step(std::int64_t micro_batch);
  Batch next_batch();
  MeanLoss forward_and_loss(const Batch& batch, std::int64_t micro_batch);
  void backward(const at::Tensor& loss);
  bool may_be_overflow() const;
  void check_finite() const;
  void start_train_line();
  void finish_train_line(bool wait);
  bool is_due(std::optional<std::int64_t> every_steps,
              std::optional<std::int64_t> every_epochs) const;
  bool evaluation_is_due() const;
  void evaluate();
  bool checkpoint_is_due() const;
  void save(bool may_go_on);
  void warn_of_late_stop();
  NamedTensors newly_frozen(const FoundCheckpoint& found) const;
  std::unique_ptr<Checkpointer> make_checkpointer(bool leads_folder);

  Setup setup_;
  std::shared_ptr<Communicator> world_;
  World& workers_;
  Control& control_;
  Log& log_;
  RunFolder folder_;
  std::shared_ptr<Trace> trace_;  // null where no step of this run is traced
  Criterion criterion_;
  std::unique_ptr<Reporter> reporter_;  // rank 0
  std::unique_ptr<DecentralizedDataParallel<TrainedModule>> parallel_;
  std::optional<FiniteCheck> finite_;
  std::unique_ptr<Evaluator> evaluator_;  // null without data.eval
  std::unique_ptr<Checkpointer> checkpointer_;
  StopTime stop_time_{0};
  LossWatch loss_watch_;
  std::unique_ptr<Prefetcher> batches_;
  Interval interval_;
  double last_loss_ = 0;        // of this worker, mean over micro-batches
  double step_loss_scale_ = 1;  // what the last step's loss was multiplied with
  std::optional<PendingLine> pending_line_;
  std::optional<EvalMetrics> last_evaluation_;
};

}  // namespace decent
