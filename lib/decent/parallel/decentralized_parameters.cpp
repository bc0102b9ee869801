#include "decent/parallel/decentralized_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "decent/core/error.h"
#include "decent/core/text.h"
#include "decent/optim/gradient_norm.h"
#include "decent/parallel/device_kernels.h"
#include "decent/parallel/exchange/meetings.h"
#include "decent/parallel/takeover.h"

namespace decent {
namespace {

bool in_memory_order_of(const at::Tensor& parameter, const at::Tensor& grad) {
  for (std::int64_t d = 0; d < parameter.dim(); ++d) {
    if (parameter.size(d) != 1 && parameter.stride(d) != grad.stride(d)) return false;
  }
  return true;
}

double squares_of(std::span<const BucketSlice> slices, const Bucket& bucket) {
  return sum_of_squares(slices, scalar_of(bucket.x), kernels_of(bucket.x));
}

}  // namespace

// Called by autograd once the gradient of one parameter is complete.
class DecentralizedParameters::Hook : public torch::autograd::PostAccumulateGradHook {
 public:
  Hook(DecentralizedParameters& owner, std::size_t parameter)
      : owner_(owner), parameter_(parameter) {}
  void operator()(const at::Tensor&) override { owner_.on_gradient(parameter_); }

 private:
  DecentralizedParameters& owner_;
  std::size_t parameter_;
};

DecentralizedParameters::DecentralizedParameters(const NamedTensors& parameters,
                                                 const NamedTensors& buffers,
                                                 std::shared_ptr<Communicator> world,
                                                 DecentralizedOptions options)
    : options_(std::move(options)), world_(std::move(world)) {
  check_options();
  if (options_.loss_scaler) scaler_.emplace(*options_.loss_scaler);
  const std::vector<Phase> phases =
      phases_of(options_.topology, world_->size(), options_.local_world_size);
  const NamedTensors trained = trained_part(parameters);
  const NamedTensors untrained = untrained_part(parameters);
  if (trained.empty())
    throw UserError("the model has no parameter to train: none requires a gradient");
  NamedTensors others = untrained;
  others.insert(others.end(), buffers.begin(), buffers.end());
  check_storage(trained, others);

  buckets_ = build_buckets(trained, options_.bucket_mb);
  for (const auto& [name, tensor] : trained) {
    const ParameterSettings by_rule{.weight_decay =
                                        tensor.dim() >= 2 ? options_.weight_decay : 0.0};
    parameters_.push_back(
        {.name = name,
         .tensor = tensor,
         .settings = options_.settings ? options_.settings(name, tensor) : by_rule});
  }
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    for (std::size_t p : buckets_[b].parameters) parameters_[p].bucket = b;
  }
  for (Parameter& parameter : parameters_) parameter.place = parameter.tensor.const_data_ptr();
  set_adaptive_factor(options_.gamma);
  make_states();
  exchange_ = options_.exchange.make({.world = world_,
                                      .membership = everyone(world_->size()),
                                      .phases = phases,
                                      .buckets = flat_tensors(buckets_),
                                      .trace = options_.trace});
  average_ = std::make_unique<GlobalAverage>(world_, flat_tensors(buckets_), buffers,
                                             options_.average_buffers);
  broadcast_start(*world_, buckets_, others);
  install_hooks();
}

DecentralizedParameters::~DecentralizedParameters() {
  for (Parameter& parameter : parameters_) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameter.tensor, nullptr);
  }
}

void DecentralizedParameters::check_options() const {
  if (world_ == nullptr)
    throw UserError("no communicator; make_single_worker() makes that of one worker");
  if (options_.update == nullptr)
    throw UserError("options.update is not set: see make_update, e.g. make_update(\"adamw\")");
  if (!options_.schedule)
    throw UserError("options.schedule is not set: see make_schedule, e.g. constant_lr(1e-3)");
  if (!(options_.clip.norm >= 0))
    throw UserError("options.clip.norm is " + std::to_string(options_.clip.norm) +
                    ": it must be >= 0 (0 is off)");
  if (!(options_.weight_decay >= 0))
    throw UserError("options.weight_decay is " + std::to_string(options_.weight_decay) +
                    ": it must be >= 0");
}

// A parameter that is elsewhere would be neither updated nor averaged.
void DecentralizedParameters::check_places() const {
  for (const Parameter& parameter : parameters_) {
    if (!got_other_memory(parameter.tensor, parameter.place)) continue;
    throw std::logic_error("parameter '" + parameter.name +
                           "' got other memory after it was taken over for training (set_data, "
                           "torch::load, Module::to): load and convert before, or write in place "
                           "(tensor.copy_) after global_avg(false)");
  }
}

std::int64_t DecentralizedParameters::parameter_count() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters_) count += parameter.tensor.numel();
  return count;
}

void DecentralizedParameters::set_adaptive_factor(double gamma) {
  if (!(gamma >= 0 && gamma <= 1))
    throw UserError("gamma is " + std::to_string(gamma) + ": it must be in [0, 1]");
  options_.gamma = gamma;
}

void DecentralizedParameters::make_states() {
  for (const Bucket& bucket : buckets_) {
    OptimizerState state;
    for (std::size_t i = 0; i < options_.update->state_names().size(); ++i) {
      state.tensors.push_back(at::zeros_like(bucket.x));
      state.pointers.push_back(state.tensors.back().data_ptr());
    }
    states_.push_back(std::move(state));
  }
}

void DecentralizedParameters::install_hooks() {
  for (std::size_t p = 0; p < parameters_.size(); ++p) {
    torch::autograd::impl::set_post_acc_grad_hooks(parameters_[p].tensor,
                                                   std::make_unique<Hook>(*this, p));
  }
}

void DecentralizedParameters::on_gradient(std::size_t parameter) {
  if (accumulating_) return;
  if (!step_open_) open_step();
  Parameter& arrived = parameters_[parameter];
  if (arrived.arrived) return;
  arrived.arrived = true;
  --missing_[arrived.bucket];
  if (updates_in_backward()) handle_complete_buckets();
}

bool DecentralizedParameters::updates_in_backward() const {
  return options_.update_time == UpdateTime::in_backward && !needs_whole_gradient();
}

bool DecentralizedParameters::needs_whole_gradient() const {
  return options_.clip.needs_whole_gradient() || scaler_;
}

void DecentralizedParameters::open_step() {
  if (average_->averaged()) {
    throw std::logic_error(
        "backward() on the global average: call revert_global_avg() first, or "
        "global_avg(false) to go on from it");
  }
  check_places();
  step_open_ = true;
  overflow_ = false;
  next_bucket_ = 0;
  squares_ = 0;
  whole_scale_ = 1;
  missing_.clear();
  for (const Bucket& bucket : buckets_) missing_.push_back(bucket.parameters.size());
  for (Parameter& parameter : parameters_) parameter.arrived = false;
  torch::autograd::Engine::get_default_engine().queue_callback([this] { close_step(); });
}

void DecentralizedParameters::handle_complete_buckets() {
  while (next_bucket_ < buckets_.size() && missing_[next_bucket_] == 0)
    handle_bucket(next_bucket_++);
}

// What is left at the end of backward: buckets with a parameter that this step did not use, and
// those behind them.
void DecentralizedParameters::close_step() {
  if (needs_whole_gradient()) measure_whole_gradient();
  while (next_bucket_ < buckets_.size()) handle_bucket(next_bucket_++);
  if (options_.clip.norm > 0) grad_norm_ = std::sqrt(squares_) / loss_scale();
  if (scaler_) scaler_->update(overflow_);
  ++step_;
  step_open_ = false;
  warn_of_missing_gradients();
}

Mixing DecentralizedParameters::wait_for_exchange(std::size_t index) {
  const TraceSpan span(options_.trace.get(), kTrainingLane, "wait",
                       {.bucket = static_cast<std::int64_t>(index)});
  const auto begin = std::chrono::steady_clock::now();
  if (options_.pre_average) show_received(index);
  const Mixing mixing = exchange_->wait(index, options_.gamma);
  wait_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return mixing;
}

void DecentralizedParameters::handle_bucket(std::size_t index) {
  const at::NoGradGuard no_grad;
  const Bucket& bucket = buckets_[index];
  const Mixing mixing = wait_for_exchange(index);

  TraceSpan span(options_.trace.get(), kTrainingLane, "mix+update",
                 {.bucket = static_cast<std::int64_t>(index)});
  std::vector<BucketSlice> slices = collect_slices(bucket);
  const double scale = clip_scale(bucket, slices);
  if (overflow_) {
    for (BucketSlice& slice : slices) slice.grad = nullptr;  // mixed only
  }
  options_.update->apply({.x = bucket.x.data_ptr(),
                          .numel = bucket.x.numel(),
                          .states = states_[index].pointers,
                          .scalar = scalar_of(bucket.x),
                          .mixing = mixing,
                          .slices = slices,
                          .lr = options_.schedule(step_ + 1),
                          .grad_scale = scale,
                          .kernels = kernels_of(bucket.x)});
  if (!overflow_) count_updates(bucket);
  release_gradients(bucket);
  span.end();
  exchange_->start(index, step_ + 1);
}

void DecentralizedParameters::show_received(std::size_t index) {
  const at::Tensor& local = buckets_[index].x;
  const auto received = exchange_->peek(index);
  if (!received) return;
  options_.pre_average({.step = step_ + 1,
                        .bucket = index,
                        .edge = *received->edge,
                        .local = local,
                        .received = received->others});
}

// Changes nothing but the layout of gradients, so that it may be called twice in a step.
std::vector<BucketSlice> DecentralizedParameters::collect_slices(const Bucket& bucket) {
  std::vector<BucketSlice> slices;
  for (std::size_t i = 0; i < bucket.parameters.size(); ++i) {
    const Parameter& parameter = parameters_[bucket.parameters[i]];
    BucketSlice slice{.offset = bucket.offsets[i],
                      .numel = parameter.tensor.numel(),
                      .weight_decay = parameter.settings.weight_decay,
                      .lr_scale = parameter.settings.lr_scale};
    at::Tensor& grad = at::Tensor(parameter.tensor).mutable_grad();
    if (grad.defined()) {
      check_dense(parameter.name, grad);
      // The update walks through memory in the order of the parameter.
      if (!in_memory_order_of(parameter.tensor, grad)) {
        grad =
            at::empty_strided(parameter.tensor.sizes(), parameter.tensor.strides(), grad.options())
                .copy_(grad);
      }
      slice.grad = grad.const_data_ptr();
      slice.updates = parameter.updates + 1;
    }
    slices.push_back(slice);
  }
  return slices;
}

void DecentralizedParameters::count_updates(const Bucket& bucket) {
  for (std::size_t p : bucket.parameters) {
    if (parameters_[p].tensor.grad().defined()) {
      ++parameters_[p].updates;
    } else {
      without_gradient_.push_back(p);
    }
  }
}

double DecentralizedParameters::clip_scale(const Bucket& bucket,
                                           const std::vector<BucketSlice>& slices) {
  if (options_.clip.norm == 0 || !options_.clip.each_bucket) return whole_scale_;
  const double squares = squares_of(slices, bucket);
  if (!scaler_) {
    check_finite(squares, bucket, slices);
    squares_ += squares;
  }
  return clip_coefficient(std::sqrt(squares) / loss_scale(), options_.clip.norm) / loss_scale();
}

void DecentralizedParameters::measure_whole_gradient() {
  const at::NoGradGuard no_grad;
  for (const Bucket& bucket : buckets_) {
    const std::vector<BucketSlice> slices = collect_slices(bucket);
    const double squares = squares_of(slices, bucket);
    if (!scaler_ || scaler_->at_its_end()) check_finite(squares, bucket, slices);
    squares_ += squares;
  }
  overflow_ = !std::isfinite(squares_);
  whole_scale_ = 1 / loss_scale();
  if (!options_.clip.needs_whole_gradient()) return;
  whole_scale_ *= clip_coefficient(std::sqrt(squares_) / loss_scale(), options_.clip.norm);
}

// Clipping would spread one bad element over all parameters.
void DecentralizedParameters::check_finite(double squares, const Bucket& bucket,
                                           const std::vector<BucketSlice>& slices) const {
  if (std::isfinite(squares)) return;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    if (std::isfinite(squares_of({&slices[i], 1}, bucket))) continue;
    throw Error(ExitCode::diverged, "training diverged: the gradient of parameter '" +
                                        parameters_[bucket.parameters[i]].name + "' in step " +
                                        std::to_string(step_ + 1) + " is not finite");
  }
}

void DecentralizedParameters::release_gradients(const Bucket& bucket) {
  for (std::size_t p : bucket.parameters) {
    at::Tensor& tensor = parameters_[p].tensor;
    tensor.mutable_grad().reset();
    // The write went through the bucket, which autograd does not connect with the parameter. It
    // must refuse, not silently use, the new value where a part of backward that is still to come
    // needs the old one.
    tensor.unsafeGetTensorImpl()->bump_version();
  }
}

void DecentralizedParameters::warn_of_missing_gradients() {
  std::sort(without_gradient_.begin(), without_gradient_.end());  // as they are registered
  std::vector<std::string> fresh;
  for (std::size_t p : without_gradient_) {
    if (!std::exchange(parameters_[p].warned, true)) fresh.push_back(parameters_[p].name);
  }
  without_gradient_.clear();
  if (!fresh.empty()) options_.warn(no_gradient_warning(step_, fresh));
}

std::optional<double> DecentralizedParameters::global_avg(bool will_revert, bool return_distance) {
  if (step_open_) throw std::logic_error("global_avg() inside backward()");
  check_places();
  exchange_->settle();
  const std::optional<double> distance = average_->average(will_revert, return_distance);
  if (!will_revert) exchange_->drop();
  return distance;
}

void DecentralizedParameters::revert_global_avg() { average_->revert(); }

double DecentralizedParameters::take_wait_seconds() { return std::exchange(wait_seconds_, 0.0); }

}  // namespace decent
