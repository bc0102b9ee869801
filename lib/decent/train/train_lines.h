#pragma once
// What a run says of its steps: the progress bar, the train lines of the metrics, and warnings
// about losses.

#include "decent/parallel/named_tensors.h"
#include "decent/task/loss_watch.h"
#include "decent/train/forward/step_losses.h"
#include "decent/train/session.h"
#include "decent/train/step_meter.h"

namespace decent {

/// A line is about the last step, whose loss must have arrived by saw(). Threads: the training
/// thread.
class TrainLines {
 public:
  /// `session` must outlive this object.
  explicit TrainLines(Session& session);

  /// Before a step, and after it.
  void begin_step() { loss_scale_ = session_.parallel->loss_scale(); }
  void end_step();
  /// Takes the losses of each step, in order.
  void saw(const StepLoss& loss);
  void waited_for_data(double seconds) { meter_.add_data_wait(seconds); }

  /// Whether the last step has a line: every log.every_steps steps; a run with fewer steps has one
  /// at its end.
  bool has_line() const;
  /// Begins the line of the last step; it is shown some steps later (StepMeter). Collective.
  void begin_line();
  /// See StepMeter.
  void finish_line(bool wait) { meter_.finish_line(wait); }

  /// What checkpoints keep, so that a resumed run has the same lines: views, see StepMeter. Call
  /// keep() before their values are read.
  NamedTensors state() const;
  void keep() { meter_.keep(facts()); }

  /// At the end of the run: warns if it learned nothing.
  void warn_of_losses();

 private:
  StepFacts facts() const;
  void show(const TrainMetrics& metrics);

  Session& session_;
  LossWatch loss_watch_;
  WrapWatch wrap_watch_;
  StepMeter meter_;
  double loss_ = 0;        // of the last step and this worker, mean over micro-batches
  double loss_scale_ = 1;  // of the last step
};

}  // namespace decent
