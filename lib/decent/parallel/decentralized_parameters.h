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
// Everything happens inside backward(): hooks on the parameters count a bucket's gradients down,
// whatever order they come in; a complete bucket is mixed, updated, and its exchange for the next
// step started. Users never call step().
//
// Threads: one object is used by one thread, the one that calls backward(). Collective:
// constructor, backward (through the exchanges it waits for), global_avg. Every step starts an
// exchange, also the last: a run ends with global_avg(), or a worker that is done leaves while
// others still receive from it. An exception out of backward() (PeerLost, a diverged gradient)
// leaves this worker in the middle of a step: nothing is left to do with the object then.

#include <cstdint>
#include <memory>
#include <optional>

#include "decent/comm/communicator.h"
#include "decent/parallel/decentralized_options.h"
#include "decent/parallel/named_tensors.h"

namespace decent {

class DecentralizedParameters {
 public:
  /// Takes over the parameters that require a gradient (they become views of flat buckets); the
  /// others and the buffers only take part in the start, when rank 0's values go to everyone.
  /// Throws UserError for options that are missing or out of range, a topology that does not fit
  /// the number of workers, and parameters that cannot be trained in place (see check_storage).
  DecentralizedParameters(const NamedTensors& parameters, const NamedTensors& buffers,
                          std::shared_ptr<Communicator> world, DecentralizedOptions options);
  /// Removes the hooks. Does not communicate: after an orderly end, global_avg(false) has waited
  /// for all that was under way. (What a traced step has started is waited for here, too.)
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
  /// gamma from the next mixing on. Throws UserError where it is not in [0, 1].
  void set_adaptive_factor(double gamma);

  /// Replaces parameters and buffers by the average over all workers; the learning state stays.
  /// With `will_revert`, revert_global_avg() restores parameters, buffers and the exchange under
  /// way bit for bit; without, that exchange is dropped and the next step does not mix. Returns the
  /// consensus distance where it is asked for.
  virtual std::optional<double> global_avg(bool will_revert = true, bool return_distance = false);
  /// Throws std::logic_error where there is nothing to revert.
  virtual void revert_global_avg();

  /// What this worker's training goes on from, with the names that checkpoints give it: every
  /// trained parameter as "model.<name>", its optimizer states as "optimizer.<name>.exp_avg" and so
  /// on, in its shape, and the number of its own updates as "optimizer.<name>.step" (int64 scalar);
  /// with a loss scaler also "scaler.scale" (float32) and "scaler.growth_tracker" (int64); and what
  /// the exchange remembers as "exchange.<name>".
  /// Views of live memory, but for the counts, which are copies.
  virtual NamedTensors training_state() const;

  /// Goes on after step `step`, once training_state()'s tensors have been given the values of that
  /// step; `state` is that list, for its counts. Starts the exchange that was under way then.
  /// Collective. Throws UserError where a count is not there.
  void continue_from(std::int64_t step, const NamedTensors& state);

  /// What the loss of the next step is to be multiplied with; 1 without options.loss_scaler.
  bool scales_loss() const;
  bool loss_scale_at_its_end() const;
  double loss_scale() const;
  /// Whether a gradient of the last step overflowed, so that it was not updated.
  bool overflowed() const;

  /// Norm of the last step's gradient over all parameters of this worker, unscaled and before
  /// clipping (NaN where it overflowed); nothing where clipping is off.
  std::optional<double> grad_norm() const;

  /// Seconds that backward() has waited for exchanges since the last call.
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
