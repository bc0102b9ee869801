#pragma once
// Decentralized data-parallel training (arXiv 2410.11998) of named parameters: every worker updates
// its own copy with its own gradient and, while the next gradient is computed, averages its weights
// with one or a few neighbours.
//
// Step t = 1, 2, .. of worker i, with x_i^0 the common start and W^(k) the mixing matrix of phase
// k:
//
//     g_i   = gradient at x_i^(t-1)
//     z_i   = x_i^0                                                    t = 1
//           = (1-gamma) x_i^(t-1) + gamma sum_j W^(k)_ij x_j^(t-1)     t > 1,  k = (t-2) mod phases
//     x_i^t = update(z_i, g_i, lr(t))
//
// Everything happens inside backward(). Hooks on the parameters count the missing gradients of each
// bucket, in whatever order they come. A complete bucket is mixed and updated, and then its
// exchange for the next step starts. step() only counts the updates; there is nothing to call.
//
// Threads: one object is used by one thread, the one that calls backward(). Collective:
// constructor, backward (through the exchanges that it waits for), global_avg. Every step starts an
// exchange, also the last one. So a run must end with global_avg(); otherwise a worker that is done
// exits while others still receive from it. After an exception out of backward() (PeerLost, a
// diverged gradient) this worker is in the middle of a step, and the object cannot be used any
// more.

#include <cstdint>
#include <memory>
#include <optional>

#include "decent/comm/communicator.h"
#include "decent/parallel/decentralized_options.h"
#include "decent/parallel/named_tensors.h"

namespace decent {

class DecentralizedParameters {
 public:
  /// Takes over the parameters that require a gradient; they become views of flat buckets. Every
  /// worker gets rank 0's values of all parameters and buffers. Collective. Throws UserError for
  /// options that are missing or out of range, a topology that cannot do the number of workers, and
  /// parameters that cannot be trained in place (see check_storage).
  DecentralizedParameters(const NamedTensors& parameters, const NamedTensors& buffers,
                          std::shared_ptr<Communicator> world, DecentralizedOptions options);
  /// Removes the hooks. Does not communicate: in an orderly end, global_avg(false) has waited for
  /// all exchanges. (It does wait for exchanges of a traced step.)
  virtual ~DecentralizedParameters();
  DecentralizedParameters(const DecentralizedParameters&) = delete;
  DecentralizedParameters& operator=(const DecentralizedParameters&) = delete;

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
  /// Sets gamma from the next mixing on. Throws UserError if it is not in [0, 1].
  void set_adaptive_factor(double gamma);

  /// Replaces parameters and buffers by the average over all workers; the optimizer's state stays.
  /// With `will_revert`, revert_global_avg() restores parameters, buffers and the exchange under
  /// way bit for bit. Without it, that exchange is dropped and the next step does not mix. With
  /// `return_distance`, returns the consensus distance sqrt(mean over workers of ||x_i - mean||^2).
  /// Collective. Throws std::logic_error inside backward().
  virtual std::optional<double> global_avg(bool will_revert = true, bool return_distance = false);
  /// Throws std::logic_error if there is nothing to revert.
  virtual void revert_global_avg();

  /// The tensors that this worker needs to resume, under their names in checkpoints. Every trained
  /// parameter is "model.<name>"; its optimizer states, in its shape, are
  /// "optimizer.<name>.exp_avg" and so on; the number of its own updates is "optimizer.<name>.step"
  /// (int64 scalar). With a loss scaler there are "scaler.scale" (float32 scalar) and
  /// "scaler.growth_tracker" (int64 scalar). What the exchange method remembers is
  /// "exchange.<name>". The tensors are views of live memory, except for the scalars, which are
  /// copies.
  virtual NamedTensors training_state() const;

  /// Resumes after step `step`. Before it, give the tensors of training_state() the values that
  /// they had after that step; `state` is that list, from which the scalars are read. Starts the
  /// exchange that was under way then. Collective. Throws UserError if a scalar is missing.
  void resume_from(std::int64_t step, const NamedTensors& state);

  /// loss_scale() is the factor for the loss of the next step; 1 without options.loss_scaler.
  bool scales_loss() const;
  bool loss_scale_at_its_end() const;
  double loss_scale() const;
  /// Whether a gradient of the last step overflowed, so that the step did not update.
  bool overflowed() const;

  /// L2 norm of the last step's gradient over all parameters of this worker, unscaled and before
  /// clipping (NaN if it overflowed); nullopt if clipping is off.
  std::optional<double> grad_norm() const;

  /// Of the differences that a modulo exchange received in 8 bits in the last step, the share that
  /// its fewer bits would have got wrong; nullopt if there were none. R (modulo_range) is too small
  /// where it stays above 0.05.
  std::optional<double> wrap_share() const;

  /// Seconds that backward() has waited for exchanges since the last call of this function.
  double take_wait_seconds();

 private:
  struct Parts;

  void check_places() const;
  void on_gradient(std::size_t parameter);
  void open_step();
  void close_step();
  void measure_whole_gradient();
  void handle_bucket(std::size_t bucket);
  Mixing wait_for_exchange(std::size_t bucket);
  void show_received(std::size_t bucket);
  void update(std::size_t bucket, const Mixing& mixing);

  DecentralizedOptions options_;
  std::unique_ptr<Parts> parts_;
  std::int64_t step_ = 0;
  bool accumulating_ = false;
  bool step_open_ = false;
  double wait_seconds_ = 0;
};

}  // namespace decent
