#pragma once
// Named parameters that several workers train together, each its own copy, inside backward().
//
// The part that all ways of training have in common: the copy in flat buckets, the optimizer's
// states, accumulation, loss scale, the global average, and the state for resuming. The derived
// classes add what workers exchange: DecentralizedParameters (weights, with neighbours) and
// DistributedParameters (gradients, with all others).
//
// Threads: one object is used by one thread, the one that calls backward(). Collective:
// constructor, backward (through what it waits for), global_avg. After an exception out of
// backward() (PeerLost, a diverged gradient) this worker is in the middle of a step, and the object
// cannot be used any more.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/parallel/named_tensors.h"
#include "decent/parallel/training_options.h"

namespace decent {

class Exchange;
class GradientScale;
class OptimizerStates;
class Replica;
struct BucketGradients;

class TrainedParameters {
 public:
  /// Removes the hooks. Does not communicate: in an orderly end, global_avg(false) has waited for
  /// all exchanges. (It does wait for exchanges of a traced step.)
  virtual ~TrainedParameters();
  TrainedParameters(const TrainedParameters&) = delete;
  TrainedParameters& operator=(const TrainedParameters&) = delete;

  /// Updates done so far.
  std::int64_t step() const { return step_; }
  /// The learning rate of the next update.
  double get_lr() const { return options_.schedule(step_ + 1); }
  std::size_t bucket_count() const;
  /// Elements of all trained parameters.
  std::int64_t parameter_count() const;

  /// While on, backward() only adds up gradients.
  void set_accumulate_grad(bool enable) { accumulating_ = enable; }
  bool accumulates_grad() const { return accumulating_; }

  /// Replaces parameters and buffers by the average over all workers; the optimizer's state stays.
  /// With `will_revert`, revert_global_avg() restores parameters, buffers and the exchange under
  /// way bit for bit. Without it, that exchange is dropped and the next step does not mix. With
  /// `return_distance`, returns the consensus distance sqrt(mean over workers of ||x_i - mean||^2).
  /// Collective. Throws std::logic_error inside backward().
  virtual std::optional<double> global_avg(bool will_revert = true, bool return_distance = false);
  /// Throws std::logic_error if there is nothing to revert.
  virtual void revert_global_avg();

  /// Whether there is a moving average of the weights: options.training.ema.
  bool has_ema() const;
  /// After global_avg(): replaces the average of the workers' weights by the average of their
  /// moving averages. If global_avg() can be reverted, revert_global_avg() reverts both.
  /// Collective. Throws std::logic_error without options.training.ema.
  void use_ema();

  /// The tensors that this worker needs to resume, under their names in checkpoints. Every trained
  /// parameter is "model.<name>"; its optimizer states, in its shape, are
  /// "optimizer.<name>.exp_avg" and so on; the number of its own updates is "optimizer.<name>.step"
  /// (int64 scalar). With options.training.ema its moving average is "ema.<name>". With a loss
  /// scaler there are "scaler.scale" (float32 scalar) and "scaler.growth_tracker" (int64 scalar).
  /// State of the exchange method is "exchange.<name>". The tensors are views of live memory,
  /// except for the scalars, which are copies.
  virtual NamedTensors training_state() const;

  /// Resumes after step `step`. Before it, give the tensors of training_state() the values that
  /// they had after that step; `state` is that list, and the scalars are read from it. Starts the
  /// exchange that was under way then. Collective. Throws UserError if a scalar is missing.
  void resume_from(std::int64_t step, const NamedTensors& state);

  /// loss_scale() is the factor for the loss of the next step; 1 without
  /// options.training.loss_scaler.
  bool scales_loss() const;
  bool loss_scale_at_its_end() const;
  double loss_scale() const;
  /// Whether a gradient of the last step overflowed, so that the step did not update.
  bool overflowed() const;

  /// Whether hold_unless_finite() works: on a GPU, without a loss scaler, and if gradients go to no
  /// other worker.
  bool can_hold() const;
  /// Before backward(), for a loss that the host looks at later: if `loss`, of one element, is not
  /// finite, this update and all that follow change nothing, except that codes of weights are still
  /// mixed. Does not wait for the GPU.
  void hold_unless_finite(const at::Tensor& loss);

  /// L2 norm of the gradient that the last step updated with, over all parameters, unscaled and
  /// before clipping (NaN if it overflowed); nullopt if clipping is off. Throws Error with
  /// ExitCode::diverged, or SharedError, if it is not finite and the host learns of that only now.
  std::optional<double> grad_norm() const;

  /// Of the differences that a modulo exchange received in 8 bits in the last step, the share that
  /// its fewer bits would have got wrong; nullopt if there were none. If it stays above 0.05, R
  /// (modulo_range) is too small.
  std::optional<double> wrap_share() const;

  /// Seconds that backward() has waited for other workers since the last call of this function. On
  /// a GPU, the time that the GPU stood still in waits that are over; the waits of the last step
  /// may count in the next call.
  double take_wait_seconds();

 protected:
  /// What differs between ways of training.
  struct Traits {
    double bucket_mb = 25;         // where the options have none
    bool copies_alike = false;     // see ReplicaOptions
    std::string without_gradient;  // the end of no_gradient_warning()
  };

  /// Takes over the parameters that require a gradient; they become views of flat buckets. Every
  /// worker gets rank 0's values of all parameters and buffers. Collective. Throws UserError for no
  /// communicator, and for parameters that cannot be trained in place (see check_storage).
  TrainedParameters(const NamedTensors& parameters, const NamedTensors& buffers,
                    const std::shared_ptr<Communicator>& communicator, TrainingOptions options,
                    const Traits& traits);

  /// Called in backward() when a step begins, when the gradient of parameter number `parameter` is
  /// complete, and when all are. finish_step() leaves every bucket updated.
  virtual void begin_step() = 0;
  virtual void on_gradient(std::size_t parameter) = 0;
  virtual void finish_step() = 0;
  /// The exchange of weights, if there is one.
  virtual Exchange* exchange() const { return nullptr; }

  const TrainingOptions& options() const { return options_; }
  Replica& replica() const;
  OptimizerStates& states() const;
  GradientScale& scale() const;

  /// Calls `work`, which waits for other workers, in a span of the trace, and counts its time.
  void wait_for_others(std::size_t bucket, const std::function<void()>& work);

  /// Adds a bucket's part to the norm of the whole gradient.
  void measure(std::size_t bucket, const BucketGradients& gradients);

  /// Mixes a bucket and updates it with `gradients`, which are not needed afterwards. `written`:
  /// see BucketStep.
  void update(std::size_t bucket, const Mixing& mixing, BucketGradients gradients,
              const PieceWork& written);

 private:
  struct Parts;

  void check_places() const;
  void gradient_ready(std::size_t parameter);
  void open_step();
  void close_step();

  TrainingOptions options_;
  std::unique_ptr<Parts> parts_;
  std::int64_t step_ = 0;
  bool accumulating_ = false;
  bool step_open_ = false;
};

}  // namespace decent
