#pragma once
// Measures the steps of training for the train lines of the metrics, and watches the wrap shares.

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/runfolder/metrics_file.h"

namespace decent {

/// The facts of a line, as this worker alone measured them.
struct StepFacts {
  std::int64_t step = 0;
  double epoch = 0;
  double lr = 0;
  double loss = 0;    // the mean over micro-batches
  double weight = 1;  // of this worker's loss in the mean over workers; 1 on average
  std::optional<double> grad_norm = {};
  std::optional<double> loss_scale = {};
  std::optional<double> wrap_share = {};
  double update_samples = 0;                 // of all workers, on average
  double comm_wait_s = 0;                    // since the line before
  std::optional<double> gpu_memory_mb = {};  // MiB, the peak since the line before
  bool between = false;  // after the run's last step, which is not a multiple of log.every_steps
};

/// A line is begun after its step and shown some steps later, once the mean of its loss and
/// gradient norm over workers has arrived: training does not wait. Threads: the training thread.
class StepMeter {
 public:
  using Show = std::function<void(const TrainMetrics&)>;

  /// `show` gets each line when it is complete. `wrap_shares`: whether there may be wrap shares,
  /// the same on all workers.
  StepMeter(std::shared_ptr<Communicator> communicator, Show show, bool wrap_shares = false);

  /// Adds a step. `loss`: the mean over its micro-batches.
  void add_step(double loss, double seconds);
  void add_data_wait(double seconds) { interval_.data_wait_s += seconds; }

  /// Finishes the line before, then begins the line of a step with the measurements since then.
  /// Collective.
  void begin_line(const StepFacts& facts);

  /// Shows the line that was begun, if there is one. Waits for its mean if `wait`; else shows the
  /// line only if its mean has arrived.
  void finish_line(bool wait);

  /// The part of the next line that is known, [2] of float64: the sum of the losses since the last
  /// regular line was begun, and their number. A view that a checkpoint stores and fills: a run
  /// resumed beyond its last step then has the same next line as a run that never ended there.
  at::Tensor losses() const { return losses_; }

  /// Puts the facts that are kept nowhere else into last_step().
  void keep(const StepFacts& facts);
  /// `facts`, with the kept facts replacing its own.
  StepFacts kept(StepFacts facts) const;
  /// [2, 4] of float64: loss, gradient norm, loss scale and wrap share, and whether each exists. A
  /// view that checkpoints store, too: an evaluation that follows a checkpoint may end the run.
  at::Tensor last_step() const { return last_step_; }

 private:
  // The measurements since the last line was begun.
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

/// Warns if copies are too far apart for the codes of a modulo exchange. These are only the last
/// bits of a weight's place on a grid: a neighbour's weight that is more than half of their range
/// away is taken for another value.
class WrapWatch {
 public:
  /// modulo2 with 4 slices has 0.02 to 0.03 and trains well.
  static constexpr double kMaxShare = 0.05;

  /// `share`: the wrap share of `step`. Returns the warning the first time it is above kMaxShare.
  std::optional<std::string> saw(std::int64_t step, double share);

 private:
  bool warned_ = false;
};

}  // namespace decent
