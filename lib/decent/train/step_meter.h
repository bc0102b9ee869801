#pragma once
// Measures the steps of training, for the train lines of the metrics.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/report/metrics_file.h"

namespace decent {

/// What a line says of its step on this worker alone.
struct StepFacts {
  std::int64_t step = 0;
  double epoch = 0;
  double lr = 0;
  double loss = 0;  // the mean over micro-batches
  std::optional<double> grad_norm = {};
  std::optional<double> loss_scale = {};
  std::optional<double> wrap_share = {};
  std::int64_t update_samples = 0;           // of all workers
  double comm_wait_s = 0;                    // since the line before
  std::optional<double> gpu_memory_mb = {};  // MiB, the peak since then
  bool between = false;  // not one of every so many steps, but the run's last one
};

/// A line is begun after its step and shown some steps later, once the mean over workers of its
/// loss and gradient norm has come: training does not wait for it. Threads: the training thread.
class StepMeter {
 public:
  using Show = std::function<void(const TrainMetrics&)>;

  /// `show` is given each line when it is complete. `wrap_shares`: whether there may be wrap
  /// shares; the same on all workers.
  StepMeter(std::shared_ptr<Communicator> communicator, Show show, bool wrap_shares = false);

  /// A step of that loss, the mean over its micro-batches, and that time.
  void add_step(double loss, double seconds);
  void add_data_wait(double seconds) { interval_.data_wait_s += seconds; }

  /// Begins the line of a step with what was measured since the line before, which is finished
  /// first. Collective.
  void begin_line(const StepFacts& facts);

  /// Shows the line that was begun, if there is one: once its mean is there where `wait`, else
  /// only if it is there already.
  void finish_line(bool wait);

  /// What of the next line is known, [2] of float64: the sum of the losses since the last line that
  /// came in its turn was begun, and their number. A view, which a checkpoint stores and fills: a
  /// run that goes on beyond its last step has the same next line as one that never ended there.
  at::Tensor losses() const { return losses_; }

  /// Puts the facts that a line says of its step and no one else remembers into last_step().
  void keep(const StepFacts& facts);
  /// `facts` with those that were kept in the place of its own.
  StepFacts kept(StepFacts facts) const;
  /// [2, 4] of float64: loss, gradient norm, loss scale and wrap share, and whether there is one.
  /// A view likewise: an evaluation that follows a checkpoint may make its step the run's last.
  at::Tensor last_step() const { return last_step_; }

 private:
  // What went by since the last line was begun.
  struct Interval {
    std::int64_t steps = 0;
    double step_s = 0;
    double data_wait_s = 0;
  };
  struct Line {
    TrainMetrics metrics;
    at::Tensor sums;  // float64, of summands_of()
    Pending work;
  };

  std::vector<double> summands_of(const StepFacts& facts) const;

  std::shared_ptr<Communicator> communicator_;
  Show show_;
  bool wrap_shares_;
  Interval interval_;
  at::Tensor losses_;
  at::Tensor last_step_;
  std::optional<Line> line_;
};

}  // namespace decent
