#include "decent/parallel/trained_parameters.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <map>
#include <stdexcept>
#include <utility>

#include "decent/comm/lost_workers.h"
#include "decent/core/error.h"
#include "decent/parallel/exchange/exchange.h"
#include "decent/parallel/global_average.h"
#include "decent/parallel/gradient_scale.h"
#include "decent/parallel/matrix_work.h"
#include "decent/parallel/missing_gradients.h"
#include "decent/parallel/optimizer_states.h"
#include "decent/parallel/replica.h"
#include "decent/parallel/storage.h"
#include "decent/parallel/wait_time.h"

namespace decent {
namespace {

std::vector<at::Tensor> clones_of(const std::vector<Bucket>& buckets) {
  std::vector<at::Tensor> clones;
  for (const Bucket& bucket : buckets) clones.push_back(bucket.x.clone());
  return clones;
}

class Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(std::function<void(std::size_t)> ready, std::size_t parameter)
      : ready_(std::move(ready)), parameter_(parameter) {}
  void operator()(const at::Tensor&) override { ready_(parameter_); }

 private:
  std::function<void(std::size_t)> ready_;
  std::size_t parameter_;
};

// Calls `action` when the backward() that is under way has computed all gradients.
void call_at_end_of_backward(std::function<void()> action) {
  torch::autograd::Engine::get_default_engine().queue_callback(std::move(action));
}

}  // namespace

// The next two are fields of Parts, so that g++ does not want them in an anonymous namespace where
// files are compiled together.

/// An exponential moving average of a worker's weights: torch.optim.swa_utils.AveragedModel with
/// get_ema_multi_avg_fn(decay). With e the average and x the weights after step t:
///
///     e = x                              t = 1
///       = decay * e + (1 - decay) * x    t > 1
///
/// For the trained parameters of `replica`, which must outlive it. Not thread-safe.
class EmaWeights {
 public:
  /// `alike`: see AverageOptions.
  EmaWeights(double decay, const Replica& replica, std::shared_ptr<Communicator> communicator,
             bool alike);

  /// Call it after step `step`.
  void update(std::int64_t step);

  /// Writes the average over all workers of their moving averages into the parameters. With
  /// `will_revert`, take_out() restores both. Collective.
  void put_in_place(bool will_revert);
  bool in_place() const { return !weights_.empty(); }
  /// Needs in_place().
  void take_out();

  /// The moving average of parameter number `i` of `bucket`, in its shape: a view of live memory.
  at::Tensor view(std::size_t bucket, std::size_t i) const;

 private:
  double decay_;
  const Replica& replica_;
  std::vector<at::Tensor> values_;  // by bucket, [numel]
  GlobalAverage average_;
  std::vector<at::Tensor> weights_;  // the weights that values_ have replaced; else empty
};

EmaWeights::EmaWeights(double decay, const Replica& replica,
                       std::shared_ptr<Communicator> communicator, bool alike)
    : decay_(decay),
      replica_(replica),
      values_(clones_of(replica.buckets())),
      average_(std::move(communicator), values_, {}, {.alike = alike}) {}

void EmaWeights::update(std::int64_t step) {
  const at::NoGradGuard no_grad;
  for (std::size_t b = 0; b < values_.size(); ++b) {
    const at::Tensor& x = replica_.buckets()[b].x;
    if (step == 1) {
      values_[b].copy_(x);
    } else {
      values_[b].lerp_(x, 1 - decay_);
    }
  }
}

void EmaWeights::put_in_place(bool will_revert) {
  const at::NoGradGuard no_grad;
  if (will_revert) weights_ = clones_of(replica_.buckets());
  try {
    average_.average(/*keep_backup=*/will_revert, /*return_distance=*/false);
  } catch (const GivenUp&) {
    weights_.clear();
    throw;
  }
  for (std::size_t b = 0; b < values_.size(); ++b) replica_.buckets()[b].x.copy_(values_[b]);
}

void EmaWeights::take_out() {
  const at::NoGradGuard no_grad;
  average_.revert();
  for (std::size_t b = 0; b < values_.size(); ++b) replica_.buckets()[b].x.copy_(weights_[b]);
  weights_.clear();
}

at::Tensor EmaWeights::view(std::size_t bucket, std::size_t i) const {
  const Bucket& flat = replica_.buckets()[bucket];
  const at::Tensor& x = replica_.parameters()[flat.parameters[i]].second;
  return values_[bucket].as_strided(x.sizes(), x.strides(), flat.offsets[i]);
}

/// While it lives, `ready(p)` is called in backward() once the gradient of parameter number p is
/// complete; on a GPU in autograd's thread of that device.
class GradientHooks {
 public:
  GradientHooks(const NamedTensors& parameters, const std::function<void(std::size_t)>& ready);
  ~GradientHooks();
  GradientHooks(const GradientHooks&) = delete;
  GradientHooks& operator=(const GradientHooks&) = delete;

 private:
  NamedTensors parameters_;
};

GradientHooks::GradientHooks(const NamedTensors& parameters,
                             const std::function<void(std::size_t)>& ready)
    : parameters_(parameters) {
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[p].second,
                                                   std::make_unique<Hook>(ready, p));
  }
}

GradientHooks::~GradientHooks() {
  for (const auto& [name, tensor] : parameters_)
    torch::autograd::impl::set_post_acc_grad_hooks(tensor, nullptr);
}

struct TrainedParameters::Parts {
  Parts(const NamedTensors& trained, const NamedTensors& untrained, const NamedTensors& buffers,
        const std::shared_ptr<Communicator>& communicator, const TrainingOptions& options,
        const Traits& traits)
      : replica(trained, untrained, buffers, communicator,
                {.bucket_mb = options.bucket_mb.value_or(traits.bucket_mb),
                 .average_buffers = options.average_buffers,
                 .copies_alike = traits.copies_alike}),
        states(replica, options),
        scale(options.clip, options.loss_scaler, replica.buckets(), replica.parameters(),
              traits.copies_alike),
        missing(traits.without_gradient),
        wait_time([communicator, x = replica.buckets().front().x] {
          return communicator->timed_event(x);
        }) {
    if (options.ema) ema.emplace(*options.ema, replica, communicator, traits.copies_alike);
  }

  Replica replica;
  OptimizerStates states;
  GradientScale scale;
  MissingGradients missing;
  WaitTime wait_time;
  std::optional<EmaWeights> ema;
  std::optional<GradientHooks> hooks;
};

TrainedParameters::TrainedParameters(const NamedTensors& parameters, const NamedTensors& buffers,
                                     const std::shared_ptr<Communicator>& communicator,
                                     TrainingOptions options, const Traits& traits)
    : options_(std::move(options)) {
  if (communicator == nullptr)
    throw UserError("no communicator; make_single_worker() makes that of one worker");
  const NamedTensors trained = trained_part(parameters);
  if (trained.empty())
    throw UserError("the model has no parameter to train: none requires a gradient");
  parts_ = std::make_unique<Parts>(trained, untrained_part(parameters), buffers, communicator,
                                   options_, traits);
  parts_->hooks.emplace(trained, [this](std::size_t parameter) { gradient_ready(parameter); });
}

TrainedParameters::~TrainedParameters() = default;

Replica& TrainedParameters::replica() const { return parts_->replica; }
OptimizerStates& TrainedParameters::states() const { return parts_->states; }
GradientScale& TrainedParameters::scale() const { return parts_->scale; }

// A parameter that is no longer in its bucket would be neither updated nor averaged.
void TrainedParameters::check_places() const {
  const auto name = parts_->replica.misplaced();
  if (!name) return;
  throw std::logic_error("parameter '" + *name +
                         "' got other memory after it was taken over for training (set_data, "
                         "torch::load, Module::to): load and convert before, or write in place "
                         "(tensor.copy_) after global_avg(false)");
}

std::size_t TrainedParameters::bucket_count() const { return parts_->replica.buckets().size(); }

std::int64_t TrainedParameters::parameter_count() const {
  return parts_->replica.parameter_count();
}

// ---- a step ---------------------------------------------------------------------------------

void TrainedParameters::gradient_ready(std::size_t parameter) {
  if (accumulating_) return;
  const at::NoGradGuard no_grad;
  if (!step_open_) open_step();
  on_gradient(parameter);
}

void TrainedParameters::open_step() {
  if (parts_->replica.averaged()) {
    throw std::logic_error(
        "backward() on the global average: call revert_global_avg() first, or "
        "global_avg(false) to continue from it");
  }
  check_places();
  step_open_ = true;
  parts_->scale.begin_step(step_ + 1);
  begin_step();
  call_at_end_of_backward([this] { close_step(); });
}

void TrainedParameters::close_step() {
  {
    const at::NoGradGuard no_grad;
    finish_step();
  }
  parts_->scale.end_step();
  ++step_;
  if (parts_->ema) parts_->ema->update(step_);
  step_open_ = false;
  if (const auto warning = parts_->missing.take_warning(parts_->replica, step_))
    options_.warn(*warning);
}

void TrainedParameters::wait_for_others(std::size_t bucket, const std::function<void()>& work) {
  const TraceSpan span(options_.trace.get(), kTrainingLane, "wait",
                       {.bucket = static_cast<std::int64_t>(bucket)});
  parts_->wait_time.measure(work);
}

void TrainedParameters::measure(std::size_t bucket, const BucketGradients& gradients) {
  parts_->scale.measure(bucket, gradients.slices);
}

void TrainedParameters::update(std::size_t index, const Mixing& mixing, BucketGradients gradients,
                               const PieceWork& written) {
  const Bucket& bucket = parts_->replica.buckets()[index];
  const GradientFactor factor = parts_->scale.of(index, gradients.slices);
  if (overflowed()) {
    for (BucketSlice& slice : gradients.slices) slice.grad = nullptr;  // mixed only
  }
  options_.update->apply({.x = bucket.x.data_ptr(),
                          .numel = bucket.x.numel(),
                          .states = parts_->states.arrays(index),
                          .scalar = scalar_of(bucket.x),
                          .mixing = mixing,
                          .slices = gradients.slices,
                          .lr = options_.schedule(step_ + 1),
                          .grad_scale = factor.grad_scale,
                          .device_scale = factor.device_scale,
                          .written = written,
                          .matrix_work = matrix_work(bucket.x.device()),
                          .factored_work = parts_->states.factored_work(index),
                          .kernels = kernels_of(bucket.x)});
  parts_->replica.written(index);
  if (overflowed()) return;
  parts_->states.count_updates(index, gradients.present);
  for (std::size_t i = 0; i < bucket.parameters.size(); ++i) {
    if (!gradients.present[i]) parts_->missing.note(bucket.parameters[i]);
  }
}

// ---- the average ----------------------------------------------------------------------------

std::optional<double> TrainedParameters::global_avg(bool will_revert, bool return_distance) {
  if (step_open_) throw std::logic_error("global_avg() inside backward()");
  check_places();
  parts_->scale.settle();
  if (has_ema() && parts_->ema->in_place()) parts_->ema->take_out();
  return parts_->replica.average(exchange(), will_revert, return_distance);
}

void TrainedParameters::revert_global_avg() {
  if (has_ema() && parts_->ema->in_place()) parts_->ema->take_out();
  parts_->replica.revert();
}

bool TrainedParameters::has_ema() const { return parts_->ema.has_value(); }

void TrainedParameters::use_ema() {
  if (!has_ema()) throw std::logic_error("use_ema() without options.training.ema");
  if (step_open_) throw std::logic_error("use_ema() inside backward()");
  if (!parts_->ema->in_place()) parts_->ema->put_in_place(parts_->replica.averaged());
}

// ---- figures --------------------------------------------------------------------------------

bool TrainedParameters::can_hold() const { return parts_->scale.can_hold(); }
void TrainedParameters::hold_unless_finite(const at::Tensor& loss) {
  parts_->scale.hold_unless_finite(loss);
}
bool TrainedParameters::scales_loss() const { return parts_->scale.scales_loss(); }
bool TrainedParameters::loss_scale_at_its_end() const {
  return parts_->scale.loss_scale_at_its_end();
}
double TrainedParameters::loss_scale() const { return parts_->scale.loss_scale(); }
bool TrainedParameters::overflowed() const { return parts_->scale.overflowed(); }
std::optional<double> TrainedParameters::grad_norm() const { return parts_->scale.norm(); }

std::optional<double> TrainedParameters::wrap_share() const {
  return exchange() == nullptr ? std::nullopt : exchange()->wrap_share();
}

double TrainedParameters::take_wait_seconds() { return parts_->wait_time.take_seconds(); }

// ---- resuming -------------------------------------------------------------------------------

NamedTensors TrainedParameters::training_state() const {
  const Replica& replica = parts_->replica;
  NamedTensors state;
  for (std::size_t b = 0; b < replica.buckets().size(); ++b) {
    const std::vector<std::size_t>& parameters = replica.buckets()[b].parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto& [name, tensor] = replica.parameters()[parameters[i]];
      state.emplace_back(tensor_name(kModelPrefix, name), tensor.detach());
      parts_->states.add_to(state, b, i);
      if (has_ema()) state.emplace_back(tensor_name(kEmaPrefix, name), parts_->ema->view(b, i));
    }
  }
  for (auto& entry : parts_->scale.state()) state.push_back(std::move(entry));
  if (exchange() == nullptr) return state;
  for (const auto& [name, tensor] : exchange()->state())
    state.emplace_back(tensor_name(kExchangePrefix, name), tensor);
  return state;
}

void TrainedParameters::resume_from(std::int64_t step, const NamedTensors& state) {
  const std::map<std::string, at::Tensor> by_name(state.begin(), state.end());
  const auto find = [&](const std::string& name) -> const at::Tensor& {
    const auto found = by_name.find(name);
    if (found == by_name.end())
      throw UserError("the state to resume from lacks '" + name + "'; training_state() names all");
    return found->second;
  };
  parts_->states.restore(find);
  parts_->scale.restore(find);
  step_ = step;
  if (exchange() == nullptr) return;
  exchange()->drop();
  exchange()->restore(part_of(state, kExchangePrefix));
  if (step == 0) return;  // the first step does not mix
  for (std::size_t b = 0; b < bucket_count(); ++b) exchange()->start(b, step);
}

}  // namespace decent
