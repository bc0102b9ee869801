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

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decent/comm/communicator.h"
#include "decent/core/trace.h"
#include "decent/optim/bucket_update.h"
#include "decent/optim/loss_scaler.h"
#include "decent/optim/schedule.h"
#include "decent/parallel/exchange/methods.h"
#include "decent/parallel/global_average.h"
#include "decent/parallel/replica.h"
#include "decent/topology/topology.h"

namespace decent {

/// When buckets are updated: as soon as their gradients are there, or all at the end of backward.
/// The results are the same bit for bit; in_backward overlaps better, and refuses a model that
/// still needs a weight after its gradient is complete (one that is also used through detach()).
enum class UpdateTime { in_backward, after_backward };

/// What a parameter has of its own; torch's parameter groups, one parameter each.
struct ParameterSettings {
  double weight_decay = 0.0;
  double lr_scale = 1.0;  // times the schedule's learning rate
};

/// Norm that gradients are clipped to, as torch.nn.utils.clip_grad_norm_ does.
struct ClipOptions {
  double norm = 0.0;         // L2, of one worker's gradients; 0 is off
  bool each_bucket = false;  // a norm for each bucket, instead of one over all parameters
  /// The whole gradient must be known before the first update.
  bool needs_whole_gradient() const { return norm > 0 && !each_bucket; }
};

/// What a pre-average callback sees of one bucket: just before it is mixed with what came.
struct PreAverage {
  std::int64_t step = 0;    // the step that is being done, from 1
  std::size_t bucket = 0;   // its number, in the order of updates
  const Edge& edge;         // who meets, this worker among them, and what each keeps of its own
  const at::Tensor& local;  // [numel], flat, zero between parameters
  const at::Tensor&
      received;  // [numel]: the peer's; of a larger edge the mean of the other members'
};

struct DecentralizedOptions {
  Topology topology = "complete";              // a name, phases, or a function that makes them
  std::shared_ptr<const BucketUpdate> update;  // see make_update, or one of the user's own
  Schedule schedule;  // learning rate of step t = 1, 2, ..: see make_schedule, or any function
  double weight_decay = 0.0;  // of tensors with at least 2 dimensions; the others do not decay
  /// Takes the place of weight_decay where it is given: called once for each parameter.
  std::function<ParameterSettings(const std::string& name, const at::Tensor& parameter)> settings =
      nullptr;
  double bucket_mb = 25.0;  // MiB
  double gamma = 1.0;       // mixing strength, 0 to 1
  /// "fp32": weights as they are; "bf16": half the bytes in edges of 2, 3/4 in 3; or a method of
  /// the user's own (see exchange.h).
  ExchangeChoice exchange = "fp32";
  bool average_buffers = true;  // floating-point buffers join the global average
  ClipOptions clip = {};        // with one norm over all, buckets are updated after backward
  UpdateTime update_time = UpdateTime::in_backward;
  /// For losses that were multiplied with loss_scale() before backward(). A step with a gradient
  /// that is not finite then mixes and does not update. Buckets are updated after backward.
  std::optional<LossScalerOptions> loss_scaler = std::nullopt;
  /// Called in backward for every bucket that is about to be mixed, in the order of buckets; it may
  /// read, not write. Larger edges cost a copy of the bucket for it.
  std::function<void(const PreAverage&)> pre_average = nullptr;
  /// Workers per node, for topologies that ask; 0: what the launcher says (LOCAL_WORLD_SIZE).
  int local_world_size = 0;
  /// Gets what buckets do in the steps in which it is on: waits, updates, exchanges (each with a
  /// thread of its own that waits for its end). Its begin_step() is the caller's.
  std::shared_ptr<Trace> trace = nullptr;
  /// Told of parameters that got no gradient, once each.
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

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
  std::size_t bucket_count() const { return buckets_.size(); }
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
  bool scales_loss() const { return scaler_.has_value(); }
  bool loss_scale_at_its_end() const { return scaler_ && scaler_->at_its_end(); }
  double loss_scale() const { return scaler_ ? scaler_->scale() : 1.0; }
  /// Whether a gradient of the last step overflowed, so that it was not updated.
  bool overflowed() const { return overflow_; }

  /// Norm of the last step's gradient over all parameters of this worker, unscaled and before
  /// clipping (NaN where it overflowed); nothing where clipping is off.
  std::optional<double> grad_norm() const { return grad_norm_; }

  /// Seconds that backward() has waited for exchanges since the last call.
  double take_wait_seconds();

 private:
  class Hook;
  struct Parameter {
    std::string name;
    at::Tensor tensor;
    std::size_t bucket = 0;
    ParameterSettings settings;
    const void* place = nullptr;  // where its bucket has it
    std::int64_t updates = 0;
    bool arrived = false;  // in this step
    bool warned = false;   // of a missing gradient
  };
  struct OptimizerState {
    std::vector<at::Tensor> tensors;
    std::vector<void*> pointers;
  };

  void check_options() const;
  void check_places() const;
  void make_states();
  void install_hooks();
  void on_gradient(std::size_t parameter);
  void open_step();
  void close_step();
  void handle_complete_buckets();
  void handle_bucket(std::size_t bucket);
  Mixing wait_for_exchange(std::size_t bucket);
  std::vector<BucketSlice> collect_slices(const Bucket& bucket);
  void count_updates(const Bucket& bucket);
  double clip_scale(const Bucket& bucket, const std::vector<BucketSlice>& slices);
  bool needs_whole_gradient() const;
  void measure_whole_gradient();
  void check_finite(double squares, const Bucket& bucket,
                    const std::vector<BucketSlice>& slices) const;
  bool updates_in_backward() const;
  void show_received(std::size_t bucket);
  void release_gradients(const Bucket& bucket);
  void warn_of_missing_gradients();

  DecentralizedOptions options_;
  std::shared_ptr<Communicator> world_;
  std::vector<Parameter> parameters_;  // in order of registration
  std::vector<Bucket> buckets_;
  std::vector<OptimizerState> states_;  // by bucket
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<GlobalAverage> average_;

  std::int64_t step_ = 0;
  bool accumulating_ = false;
  bool step_open_ = false;
  std::vector<std::size_t> missing_;           // by bucket: gradients still to come in this step
  std::size_t next_bucket_ = 0;                // buckets are handled in this order on every worker
  std::vector<std::size_t> without_gradient_;  // parameters, in this step
  std::optional<LossScaler> scaler_;
  bool overflow_ = false;   // a gradient of this step is not finite
  double squares_ = 0;      // of this step's gradients, scaled, as far as they are measured
  double whole_scale_ = 1;  // what this step's whole gradient is multiplied with
  std::optional<double> grad_norm_;
  double wait_seconds_ = 0;
};

}  // namespace decent
