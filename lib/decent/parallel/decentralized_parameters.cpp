#include "decent/parallel/decentralized_parameters.h"

#include <ATen/core/grad_mode.h>

#include <chrono>
#include <map>
#include <stdexcept>
#include <utility>

#include "decent/core/error.h"
#include "decent/parallel/arrivals.h"
#include "decent/parallel/device_kernels.h"
#include "decent/parallel/exchange/meetings.h"
#include "decent/parallel/gradient_hooks.h"
#include "decent/parallel/gradient_scale.h"
#include "decent/parallel/missing_gradients.h"
#include "decent/parallel/optimizer_states.h"
#include "decent/parallel/replica.h"
#include "decent/parallel/tensor_names.h"

namespace decent {

// What a step goes through, in the order in which it is made.
struct DecentralizedParameters::Parts {
  Parts(const NamedTensors& trained, const NamedTensors& untrained, const NamedTensors& buffers,
        const std::shared_ptr<Communicator>& world, const std::vector<Phase>& phases,
        const DecentralizedOptions& options)
      : replica(trained, untrained, buffers, world,
                {.bucket_mb = options.bucket_mb, .average_buffers = options.average_buffers}),
        states(replica, options),
        exchange(options.exchange.make({.world = world,
                                        .membership = everyone(world->size()),
                                        .phases = phases,
                                        .buckets = flat_tensors(replica.buckets()),
                                        .trace = options.trace,
                                        .slices = options.slices,
                                        .gamma = options.gamma,
                                        .modulo_range = options.modulo_range,
                                        .schedule = options.schedule,
                                        .lr_scales = states.lr_scales()})),
        arrivals(replica.buckets()),
        scale(options.clip, options.loss_scaler, replica.parameters()) {}

  Replica replica;
  OptimizerStates states;
  std::unique_ptr<Exchange> exchange;
  Arrivals arrivals;
  GradientScale scale;
  MissingGradients missing;
  std::optional<GradientHooks> hooks;
};

DecentralizedParameters::DecentralizedParameters(const NamedTensors& parameters,
                                                 const NamedTensors& buffers,
                                                 std::shared_ptr<Communicator> world,
                                                 DecentralizedOptions options)
    : options_(std::move(options)) {
  if (world == nullptr)
    throw UserError("no communicator; make_single_worker() makes that of one worker");
  options_.check();
  const std::vector<Phase> phases =
      phases_of(options_.topology, world->size(), options_.local_world_size);
  const NamedTensors trained = trained_part(parameters);
  if (trained.empty())
    throw UserError("the model has no parameter to train: none requires a gradient");
  parts_ = std::make_unique<Parts>(trained, untrained_part(parameters), buffers, world, phases,
                                   options_);
  parts_->hooks.emplace(trained, [this](std::size_t parameter) { on_gradient(parameter); });
}

DecentralizedParameters::~DecentralizedParameters() = default;

// A parameter that is elsewhere would be neither updated nor averaged.
void DecentralizedParameters::check_places() const {
  const auto name = parts_->replica.misplaced();
  if (!name) return;
  throw std::logic_error("parameter '" + *name +
                         "' got other memory after it was taken over for training (set_data, "
                         "torch::load, Module::to): load and convert before, or write in place "
                         "(tensor.copy_) after global_avg(false)");
}

std::size_t DecentralizedParameters::bucket_count() const {
  return parts_->replica.buckets().size();
}

std::int64_t DecentralizedParameters::parameter_count() const {
  return parts_->replica.parameter_count();
}

void DecentralizedParameters::set_adaptive_factor(double gamma) {
  check_gamma(gamma);
  options_.gamma = gamma;
  parts_->exchange->set_gamma(gamma);
}

void DecentralizedParameters::on_gradient(std::size_t parameter) {
  if (accumulating_) return;
  if (!step_open_) open_step();
  parts_->arrivals.note(parameter);
  if (!options_.updates_in_backward()) return;
  while (const auto bucket = parts_->arrivals.take_complete()) handle_bucket(*bucket);
}

void DecentralizedParameters::open_step() {
  if (parts_->replica.averaged()) {
    throw std::logic_error(
        "backward() on the global average: call revert_global_avg() first, or "
        "global_avg(false) to continue from it");
  }
  check_places();
  step_open_ = true;
  parts_->arrivals.begin();
  parts_->scale.begin_step(step_ + 1);
  call_at_end_of_backward([this] { close_step(); });
}

// What is left at the end of backward: buckets with a parameter that this step did not use, and
// those behind them.
void DecentralizedParameters::close_step() {
  if (options_.needs_whole_gradient()) measure_whole_gradient();
  while (const auto bucket = parts_->arrivals.take_any()) handle_bucket(*bucket);
  parts_->scale.end_step();
  ++step_;
  step_open_ = false;
  if (const auto warning = parts_->missing.take_warning(parts_->replica, step_))
    options_.warn(*warning);
}

void DecentralizedParameters::measure_whole_gradient() {
  const at::NoGradGuard no_grad;
  for (std::size_t b = 0; b < bucket_count(); ++b)
    parts_->scale.measure(parts_->replica.buckets()[b], parts_->states.slices(b));
  parts_->scale.measured();
}

Mixing DecentralizedParameters::wait_for_exchange(std::size_t index) {
  const TraceSpan span(options_.trace.get(), kTrainingLane, "wait",
                       {.bucket = static_cast<std::int64_t>(index)});
  const auto begin = std::chrono::steady_clock::now();
  if (options_.pre_average) show_received(index);
  const Mixing mixing = parts_->exchange->wait(index, options_.gamma);
  wait_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return mixing;
}

void DecentralizedParameters::show_received(std::size_t index) {
  const auto received = parts_->exchange->peek(index);
  if (!received) return;
  options_.pre_average({.step = step_ + 1,
                        .bucket = index,
                        .edge = *received->edge,
                        .local = parts_->replica.buckets()[index].x,
                        .received = received->others});
}

void DecentralizedParameters::handle_bucket(std::size_t index) {
  const at::NoGradGuard no_grad;
  const Mixing mixing = wait_for_exchange(index);
  TraceSpan span(options_.trace.get(), kTrainingLane, "mix+update",
                 {.bucket = static_cast<std::int64_t>(index)});
  update(index, mixing);
  parts_->replica.release_gradients(index);
  span.end();
  parts_->exchange->start(index, step_ + 1);
}

void DecentralizedParameters::update(std::size_t index, const Mixing& mixing) {
  const Bucket& bucket = parts_->replica.buckets()[index];
  std::vector<BucketSlice> slices = parts_->states.slices(index);
  const double grad_scale = parts_->scale.of(bucket, slices);
  if (overflowed()) {
    for (BucketSlice& slice : slices) slice.grad = nullptr;  // mixed only
  }
  options_.update->apply({.x = bucket.x.data_ptr(),
                          .numel = bucket.x.numel(),
                          .states = parts_->states.arrays(index),
                          .scalar = scalar_of(bucket.x),
                          .mixing = mixing,
                          .slices = slices,
                          .lr = options_.schedule(step_ + 1),
                          .grad_scale = grad_scale,
                          .written = parts_->exchange->while_writing(index, step_ + 1),
                          .kernels = kernels_of(bucket.x)});
  if (overflowed()) return;
  parts_->states.count_updates(index);
  parts_->missing.look_at(parts_->replica, index);
}

std::optional<double> DecentralizedParameters::global_avg(bool will_revert, bool return_distance) {
  if (step_open_) throw std::logic_error("global_avg() inside backward()");
  check_places();
  return parts_->replica.average(*parts_->exchange, will_revert, return_distance);
}

void DecentralizedParameters::revert_global_avg() { parts_->replica.revert(); }

bool DecentralizedParameters::scales_loss() const { return parts_->scale.scales_loss(); }
bool DecentralizedParameters::loss_scale_at_its_end() const {
  return parts_->scale.loss_scale_at_its_end();
}
double DecentralizedParameters::loss_scale() const { return parts_->scale.loss_scale(); }
bool DecentralizedParameters::overflowed() const { return parts_->scale.overflowed(); }
std::optional<double> DecentralizedParameters::grad_norm() const { return parts_->scale.norm(); }

std::optional<double> DecentralizedParameters::wrap_share() const {
  return parts_->exchange->wrap_share();
}

double DecentralizedParameters::take_wait_seconds() { return std::exchange(wait_seconds_, 0.0); }

NamedTensors DecentralizedParameters::training_state() const {
  const Replica& replica = parts_->replica;
  NamedTensors state;
  for (std::size_t b = 0; b < replica.buckets().size(); ++b) {
    const std::vector<std::size_t>& parameters = replica.buckets()[b].parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const auto& [name, tensor] = replica.parameters()[parameters[i]];
      state.emplace_back(tensor_name(kModelPrefix, name), tensor.detach());
      parts_->states.add_to(state, b, i);
    }
  }
  for (auto& entry : parts_->scale.state()) state.push_back(std::move(entry));
  for (const auto& [name, tensor] : parts_->exchange->state())
    state.emplace_back(tensor_name(kExchangePrefix, name), tensor);
  return state;
}

void DecentralizedParameters::resume_from(std::int64_t step, const NamedTensors& state) {
  const std::map<std::string, at::Tensor> by_name(state.begin(), state.end());
  const auto find = [&](const std::string& name) -> const at::Tensor& {
    const auto found = by_name.find(name);
    if (found == by_name.end())
      throw UserError("the state to resume from lacks '" + name + "'; training_state() names all");
    return found->second;
  };
  parts_->states.restore(find);
  parts_->scale.restore(find);
  parts_->exchange->drop();
  parts_->exchange->restore(part_of(state, kExchangePrefix));
  step_ = step;
  if (step == 0) return;  // the first step does not mix
  for (std::size_t b = 0; b < bucket_count(); ++b) parts_->exchange->start(b, step);
}

}  // namespace decent
